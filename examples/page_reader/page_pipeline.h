/// Reads pages: orientation, then layout and detection at once, then direction and recognition of
/// every line, all through one queue over the device's cores.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "corelane/base/status.h"
#include "model_set.h"
#include "page_layout.h"
#include "page_orientation.h"
#include "picture.h"
#include "tensor_dump.h"
#include "text_detector.h"
#include "text_direction.h"
#include "text_recognizer.h"

namespace page_reader {

struct TextLine {
  TextBox box;
  Direction direction;
  RecognizedText text;
};

/// What was read on one page. Boxes are in the pixels of the upright page.
struct PageResult {
  Orientation orientation;
  int width = 0;  ///< Of the upright page.
  int height = 0;
  std::vector<Region> regions;
  std::vector<TextLine> lines;  ///< In reading order; those without text are dropped.
  corelane::Duration time{};    ///< From the first submission to the last line.
};

/// Lines below this mean probability are noise.
inline constexpr float kMinTextScore = 0.5F;

/// Finished inferences, and how many are expected in all as far as is known.
using ReadingProgress = std::function<void(std::size_t done, std::size_t expected)>;

/// Reads with models that are used by nothing else meanwhile. One thread.
class PageReader {
 public:
  /// kUnsupportedModel when a model's outputs or metadata are not what its role needs.
  static corelane::Result<PageReader> create(ModelSet& models);

  struct Options {
    std::size_t times = 1;       ///< How often the page is read.
    std::size_t in_flight = 1;   ///< How many of these readings are under way at once.
    TensorDump* dump = nullptr;  ///< Gets the tensors of the first reading.
    ReadingProgress on_progress;
  };
  /// One result for each reading.
  corelane::Result<std::vector<PageResult>> read(const Picture& page, const Options& options);
  /// Names of layout classes.
  const std::vector<std::string>& labels() const noexcept { return labels_; }

 private:
  class Reading;
  explicit PageReader(ModelSet& models) : models_(&models) {}

  ModelSet* models_;
  Alphabet alphabet_;
  std::vector<std::string> labels_;
};

}  // namespace page_reader
