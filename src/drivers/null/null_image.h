/// What the null device knows of an image: its inputs and outputs.
#pragma once

#include <optional>
#include <vector>

#include "corelane/device/executable.h"

namespace corelane::drivers::null {

struct Description {
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
  /// S(n) of this image alone, instead of the device's.
  std::optional<Duration> a;
  std::optional<Duration> b;
  std::size_t constants = 0;  ///< Bytes it is to hold by the figures.
};

/// Any kind of image is taken. Of the kind "null" the bytes are lines of text:
///   input x f32 1,3        name, element type, shape ('?' for an open dimension)
///   output y f32 1,3
///   time 1ms 100us         optional: a, and b
///   constants 64k          optional: bytes in the memory figures
/// Other kinds are not parsed: they have the inputs and outputs that the image declares, or else
/// f32 inputs of `input_shapes` and one output like the first input. `input_shapes` replaces
/// declared input shapes that accept them.
Result<Description> describe(const device::Image& image, const std::vector<Shape>& input_shapes);

}  // namespace corelane::drivers::null
