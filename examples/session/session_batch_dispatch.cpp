/// Reads a page: a detector finds its lines, the recogniser gets them as one batch. run_batch makes
/// a task of each line, so that they are spread over the cores, and puts the outputs together.
///
///   session_batch_dispatch PP-OCRv6_det_small.onnx PP-OCRv6_rec_small.onnx page.png
#include <fmt/format.h>

#include <algorithm>

#include "picture_file.h"
#include "session_example.h"
#include "text_detector.h"
#include "text_recognizer.h"

namespace {

using namespace session_example;

struct Options : Arguments {
  std::filesystem::path detector, recogniser, picture;
};

/// The lines of a page, each 48 high, all of one width.
corelane::Result<std::vector<page_reader::Picture>> find_lines(
    const Options& options, const corelane::SessionOptions& how) {
  CORELANE_ASSIGN(const auto page, page_reader::load_picture(options.picture));
  CORELANE_ASSIGN(auto session, corelane::Session::create(options.detector, how));
  page_reader::TextDetectorSettings settings;
  settings.min_side = 384;
  const auto pixels = page_reader::detector_input(page, settings).pixels;
  CORELANE_ASSIGN(const auto outputs, session.run(feed_of(pixels)));
  CORELANE_TRY(dump(options, "detection", 0, feed_of(pixels), outputs[0]));

  std::vector<page_reader::Picture> lines;
  int width = 0;
  for (const auto& box : page_reader::find_text(floats(outputs[0]), pixels.width(), pixels.height(),
                                                {page.width(), page.height()})) {
    lines.push_back(page_reader::recognizer_input(page_reader::cut_out(page, box.quad)).pixels);
    width = std::max(width, lines.back().width());
  }
  for (auto& line : lines)
    line = page_reader::on_canvas(line, width, line.height(), page_reader::kTextPadding);
  return lines;
}

corelane::Status look(const Options& options) {
  corelane::SessionOptions how = pixel_options(options, page_reader::text_input({}));
  how.schedule = {0, 1, 2};
  CORELANE_ASSIGN(const auto lines, find_lines(options, how));
  if (lines.empty()) {
    fmt::print("{}: no text\n", options.picture.string());
    return {};
  }
  CORELANE_ASSIGN(auto session, corelane::Session::create(options.recogniser, how));
  CORELANE_ASSIGN(const std::string listing, character_listing(session));
  const page_reader::Alphabet alphabet(listing);

  std::vector<std::uint8_t> bytes;
  for (const auto& line : lines)
    bytes.insert(bytes.end(), line.bytes().begin(), line.bytes().end());
  const auto count = static_cast<std::int64_t>(lines.size());
  const corelane::Feed batch = feed_of(bytes, {count, lines[0].height(), lines[0].width(), 3});
  const Stopwatch watch;
  CORELANE_ASSIGN(const corelane::Outputs outputs, session.run_batch(batch));
  const double ms = watch.ms();

  const auto steps = static_cast<std::size_t>(outputs[0].shape[1]);
  const auto scores = floats(outputs[0]);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t one = scores.size() / lines.size();
    const auto read = page_reader::decode_ctc(scores.subspan(i * one, one), steps, alphabet);
    fmt::print("{:3.0f} %  {}\n", read.score * 100, read.text);
  }
  fmt::print("{} lines of {} x {} in {:.0f} ms, with compiling; {}\n", lines.size(),
             lines[0].width(), lines[0].height(), ms, tasks_by_core(session.statistics()));
  return dump(options, "recognition", 0, batch, outputs[0]);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Reads a page, all lines in one call.", "session_batch_dispatch"};
  app.add_option("detector", options.detector, "ONNX or program file")->required();
  app.add_option("recogniser", options.recogniser, "ONNX or program file")->required();
  app.add_option("picture", options.picture, "PNG or JPEG file of a page")->required();
  add_options(app, options);
  return run(app, argc, argv, [&] { return look(options); });
}
