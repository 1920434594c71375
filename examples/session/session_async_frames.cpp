/// Frames without waiting for each: where is text? Callbacks come in the order of the frames, also
/// when a later one is done earlier. When the queue is full run_async waits: no frame is lost.
///
///   session_async_frames PP-OCRv6_det_small.onnx out/frames
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "picture_file.h"
#include "session_example.h"
#include "text_detector.h"

namespace {

using namespace session_example;

struct Options : Arguments {
  std::filesystem::path model;
  std::filesystem::path frames;
  bool unordered = false;
};

/// What the callbacks leave behind. They come from one thread of the session, one after the other.
struct Arrived {
  std::vector<std::uint64_t> tasks;
  corelane::Status problem;  ///< The first.
};

corelane::Status show(const Options& options, const std::string& name, std::uint64_t task,
                      page_reader::Extent page, const page_reader::Picture& pixels,
                      const corelane::Tensor& chart) {
  const auto boxes = page_reader::find_text(floats(chart), pixels.width(), pixels.height(), page);
  fmt::print("{}: {}", name, boxes.empty() ? "no text" : "text at");
  for (const auto& box : boxes)
    fmt::print(" ({:.0f}, {:.0f}, {:.0f} %)", box.quad[0].x, box.quad[0].y, box.score * 100);
  fmt::print("\n");
  return dump(options, "detection", task, feed_of(pixels), chart);
}

corelane::Status look(const Options& options) {
  CORELANE_ASSIGN(const auto frames, pictures_in(options.frames));
  corelane::SessionOptions how = pixel_options(options, page_reader::text_input({}));
  how.schedule = {0, 1, 2};
  how.sequential_callbacks = !options.unordered;
  CORELANE_ASSIGN(auto session, corelane::Session::create(options.model, how));

  page_reader::TextDetectorSettings settings;
  settings.min_side = 32;  // Frames keep their size.
  Arrived arrived;
  const Stopwatch watch;
  for (const auto& path : frames) {
    CORELANE_ASSIGN(const auto frame, page_reader::load_picture(path));
    const page_reader::Extent page{frame.width(), frame.height()};
    const auto pixels = page_reader::detector_input(frame, settings).pixels;
    auto done = [&arrived, &options, page, pixels, name = path.filename().string()](
                    std::uint64_t task, corelane::Result<corelane::Outputs> outputs) {
      arrived.tasks.push_back(task);
      corelane::Status status =
          outputs ? show(options, name, task, page, pixels, outputs->front()) : outputs.error();
      if (arrived.problem.ok()) arrived.problem = std::move(status);
    };
    // The pixels are copied before run_async returns.
    CORELANE_ASSIGN([[maybe_unused]] const std::uint64_t task,
                    session.run_async(feed_of(pixels), std::move(done)));
  }
  CORELANE_TRY(session.close());  // Every callback has returned.
  CORELANE_TRY(arrived.problem);
  const double seconds = watch.ms() / 1000;
  const bool ordered = std::is_sorted(arrived.tasks.begin(), arrived.tasks.end());
  fmt::print("{} frames in {:.2f} s, {:.1f} a second; callbacks {} the order of the frames; {}\n",
             arrived.tasks.size(), seconds, static_cast<double>(arrived.tasks.size()) / seconds,
             ordered ? "in" : "not in", tasks_by_core(session.statistics()));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Where is text in frames of a clip?", "session_async_frames"};
  app.add_option("model", options.model, "a text detector, ONNX or program file")->required();
  app.add_option("frames", options.frames, "folder of PNG or JPEG files")->required();
  app.add_flag("--unordered", options.unordered, "callbacks as frames are done");
  add_options(app, options);
  return run(app, argc, argv, [&] { return look(options); });
}
