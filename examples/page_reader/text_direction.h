/// Is a line of text upside down? Pure functions, any thread.
#pragma once

#include <span>

#include "model_input.h"
#include "picture.h"

namespace page_reader {

inline constexpr int kDirectionWidth = 192;
inline constexpr int kDirectionHeight = 48;
/// Below this probability a line stays as it is.
inline constexpr float kDirectionThreshold = 0.9F;

struct Direction {
  bool upside_down = false;  ///< And sure of it.
  int degrees = 0;           ///< What the model says, 0 or 180.
  float score = 0;
};

/// The line, 48 high and at most 192 wide, padded on the right: [1, 3, 48, 192].
ModelInput direction_input(const Picture& line);

/// From the probabilities of 0 and 180 degrees.
Direction read_direction(std::span<const float> probabilities);

}  // namespace page_reader
