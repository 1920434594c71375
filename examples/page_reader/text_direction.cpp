#include "text_direction.h"

#include <algorithm>
#include <cmath>

namespace page_reader {

ModelInput direction_input(const Picture& line) {
  const double ratio = static_cast<double>(line.width()) / std::max(1, line.height());
  const int width = static_cast<int>(
      std::clamp(std::ceil(kDirectionHeight * ratio), 1.0, double{kDirectionWidth}));
  return text_input(on_canvas(resize(line, width, kDirectionHeight), kDirectionWidth,
                              kDirectionHeight, kTextPadding));
}

Direction read_direction(std::span<const float> probabilities) {
  Direction direction;
  if (probabilities.size() < 2) return direction;
  const bool turned = probabilities[1] > probabilities[0];
  direction.degrees = turned ? 180 : 0;
  direction.score = turned ? probabilities[1] : probabilities[0];
  direction.upside_down = turned && direction.score > kDirectionThreshold;
  return direction;
}

}  // namespace page_reader
