/// A video loop that reads the text in frames, with a pipeline of depth 3: run_pipeline submits a
/// frame and returns the outputs of the frame three calls ago, so that three cores are busy in a
/// plain loop.
///
///   session_video_loop PP-OCRv6_det_small.onnx PP-OCRv6_rec_small.onnx out/frames
#include <fmt/format.h>

#include <deque>
#include <optional>

#include "picture_file.h"
#include "session_example.h"
#include "text_detector.h"
#include "text_recognizer.h"

namespace {

using namespace session_example;

struct Options : Arguments {
  std::filesystem::path detector, recogniser, frames;
  std::size_t depth = 3;
};

constexpr float kSure = 0.95F;

/// Shows the text in frames as they come out of the pipeline.
class TextReader {
 public:
  static corelane::Result<TextReader> create(const Options& options) {
    TextReader reader(options);
    CORELANE_ASSIGN(reader.session_,
                    corelane::Session::create(options.recogniser,
                                              pixel_options(options, page_reader::text_input({}))));
    CORELANE_ASSIGN(const std::string listing, character_listing(reader.session_));
    reader.alphabet_ = page_reader::Alphabet(listing);
    return reader;
  }

  corelane::Status show(const std::string& name, const page_reader::Picture& frame,
                        const page_reader::Picture& pixels, const corelane::Tensor& chart) {
    CORELANE_TRY(dump(options_, "detection", shown_++, feed_of(pixels), chart));
    for (const auto& box : page_reader::find_text(floats(chart), pixels.width(), pixels.height(),
                                                  {frame.width(), frame.height()})) {
      const auto line = page_reader::recognizer_input(page_reader::cut_out(frame, box.quad));
      CORELANE_ASSIGN(const auto outputs, session_.run(feed_of(line.pixels)));
      const auto steps = static_cast<std::size_t>(outputs[0].shape[1]);
      const auto read = page_reader::decode_ctc(floats(outputs[0]), steps, alphabet_);
      if (read.score >= kSure)
        fmt::print("{}: '{}' ({:.0f} %) at ({:.0f}, {:.0f})\n", name, read.text, read.score * 100,
                   box.quad[0].x, box.quad[0].y);
    }
    return {};
  }
  std::size_t shown() const { return shown_; }

 private:
  explicit TextReader(const Options& options) : options_(options) {}
  Options options_;
  corelane::Session session_;
  page_reader::Alphabet alphabet_;
  std::size_t shown_ = 0;
};

struct Frame {
  std::string name;
  page_reader::Picture picture, pixels;
};

corelane::Status look(const Options& options) {
  CORELANE_ASSIGN(const auto paths, pictures_in(options.frames));
  corelane::SessionOptions how = pixel_options(options, page_reader::text_input({}));
  how.schedule = {0, 1, 2};
  CORELANE_ASSIGN(auto session, corelane::Session::create(options.detector, how));
  CORELANE_ASSIGN(TextReader reader, TextReader::create(options));
  std::deque<Frame> pipeline;  // The frames that are in it, the oldest first.
  const auto show_oldest = [&](const corelane::Outputs& outputs) {
    const Frame frame = std::move(pipeline.front());
    pipeline.pop_front();
    return reader.show(frame.name, frame.picture, frame.pixels, outputs[0]);
  };

  page_reader::TextDetectorSettings settings;
  settings.min_side = 32;  // Frames keep their size.
  const Stopwatch watch;
  for (const auto& path : paths) {
    CORELANE_ASSIGN(auto picture, page_reader::load_picture(path));
    auto pixels = page_reader::detector_input(picture, settings).pixels;
    pipeline.push_back({path.filename().string(), std::move(picture), std::move(pixels)});
    CORELANE_ASSIGN(const std::optional<corelane::Outputs> outputs,
                    session.run_pipeline(feed_of(pipeline.back().pixels), options.depth));
    if (outputs) CORELANE_TRY(show_oldest(*outputs));  // None while it fills.
  }
  for (const auto& outputs : session.flush()) {
    if (!outputs) return outputs.error();
    CORELANE_TRY(show_oldest(*outputs));
  }
  const double seconds = watch.ms() / 1000;
  fmt::print("{} frames in {:.2f} s, {:.1f} a second, pipeline of depth {}; {}\n", reader.shown(),
             seconds, static_cast<double>(reader.shown()) / seconds, options.depth,
             tasks_by_core(session.statistics()));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Reads the text in frames of a clip.", "session_video_loop"};
  app.add_option("detector", options.detector, "ONNX or program file")->required();
  app.add_option("recogniser", options.recogniser, "ONNX or program file")->required();
  app.add_option("frames", options.frames, "folder of PNG or JPEG files")->required();
  app.add_option("--depth", options.depth, "of the pipeline")->check(CLI::Range(1, 64));
  add_options(app, options);
  return run(app, argc, argv, [&] { return look(options); });
}
