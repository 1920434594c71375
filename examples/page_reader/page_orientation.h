/// Which way up is the page? Pure functions, any thread.
#pragma once

#include <span>

#include "model_input.h"
#include "picture.h"

namespace page_reader {

/// Below this probability a page stays as it is.
inline constexpr float kOrientationThreshold = 0.7F;

struct Orientation {
  int degrees = 0;  ///< The page lies turned clockwise by this: 0, 90, 180 or 270.
  float score = 0;
  /// Quarter turns counter-clockwise that put it upright; 0 when the model is not sure.
  int quarters_back() const noexcept { return score >= kOrientationThreshold ? degrees / 90 : 0; }
};

/// The shorter side scaled to 256, the middle 224 x 224 of it: [1, 3, 224, 224].
ModelInput orientation_input(const Picture& page);

/// From the probabilities of 0, 90, 180 and 270 degrees.
Orientation read_orientation(std::span<const float> probabilities);

}  // namespace page_reader
