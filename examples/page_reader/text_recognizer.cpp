#include "text_recognizer.h"

#include <algorithm>
#include <cmath>

namespace page_reader {
namespace {

constexpr int kWidthStep = 64;
constexpr int kMinWidth = 320;
constexpr int kMaxWidth = 3200;

/// Width of the line itself at the model's height.
int scaled_width(int width, int height) noexcept {
  const double ratio = static_cast<double>(width) / std::max(1, height);
  return static_cast<int>(std::clamp(std::ceil(kLineHeight * ratio), 1.0, double{kMaxWidth}));
}

}  // namespace

Alphabet::Alphabet(std::string_view listing) {
  characters_.emplace_back();
  while (!listing.empty()) {
    const std::size_t end = listing.find('\n');
    std::string_view line = listing.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    characters_.emplace_back(line);
    if (end == std::string_view::npos) break;
    listing.remove_prefix(end + 1);
  }
  characters_.emplace_back(" ");
}

int recognizer_width(int width, int height) noexcept {
  const int steps = (scaled_width(width, height) + kWidthStep - 1) / kWidthStep;
  return std::max(kMinWidth, steps * kWidthStep);
}

ModelInput recognizer_input(const Picture& line) {
  const int width = scaled_width(line.width(), line.height());
  return text_input(on_canvas(resize(line, width, kLineHeight),
                              recognizer_width(line.width(), line.height()), kLineHeight,
                              kTextPadding));
}

RecognizedText decode_ctc(std::span<const float> probabilities, std::size_t steps,
                          const Alphabet& alphabet) {
  RecognizedText result;
  const std::size_t classes = alphabet.size();
  if (classes == 0 || probabilities.size() / classes < steps) return result;
  std::size_t previous = 0, count = 0;
  double total = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    const auto row = probabilities.subspan(step * classes, classes);
    const auto best = std::max_element(row.begin(), row.end());
    const auto index = static_cast<std::size_t>(best - row.begin());
    if (index != 0 && index != previous) {
      result.text += alphabet[index];
      total += static_cast<double>(*best);
      ++count;
    }
    previous = index;
  }
  if (count > 0) result.score = static_cast<float>(total / static_cast<double>(count));
  return result;
}

}  // namespace page_reader
