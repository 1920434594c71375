#include "page_orientation.h"

#include <algorithm>

namespace page_reader {
namespace {
constexpr int kShortSide = 256;
constexpr int kSide = 224;
}  // namespace

ModelInput orientation_input(const Picture& page) {
  // The middle square first: the rest of a long page would be scaled for nothing.
  const int side = std::min(page.width(), page.height());
  const Picture square =
      crop(page, (page.width() - side) / 2, (page.height() - side) / 2, side, side);
  const Picture scaled = resize(square, kShortSide, kShortSide, Filter::kLanczos);
  const int margin = (kShortSide - kSide) / 2;
  return imagenet_input(crop(scaled, margin, margin, kSide, kSide));
}

Orientation read_orientation(std::span<const float> probabilities) {
  Orientation orientation;
  if (probabilities.size() < 4) return orientation;
  const auto best = std::max_element(probabilities.begin(), probabilities.begin() + 4);
  orientation.degrees = static_cast<int>(best - probabilities.begin()) * 90;
  orientation.score = *best;
  return orientation;
}

}  // namespace page_reader
