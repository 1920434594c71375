/// What a model is fed with: pixels and how they become numbers.
#pragma once

#include <vector>

#include "corelane/base/status.h"
#include "corelane/runtime/context.h"
#include "picture.h"

namespace page_reader {

/// Pixels in the models' channel order (blue, green, red), turned into x = (pixel - mean) / std
/// when they are handed to a context.
struct ModelInput {
  Picture pixels;
  std::vector<float> mean;
  std::vector<float> std;
};

/// Mean and deviation of the text models: x = pixel / 127.5 - 1.
ModelInput text_input(Picture pixels);
/// Those of networks that were first trained on ImageNet (orientation and layout).
ModelInput imagenet_input(Picture pixels);
/// The value that such a text input pads with: the pixel that becomes (nearly) 0.
inline constexpr Colour kTextPadding{128, 128, 128};

/// Gives input 0 of the context the shape [1, 3, height, width] and the pixels. The copy (with
/// normalisation and the change from interleaved to planar) is made by the library at once, so
/// the pixels may go away.
corelane::Status feed(corelane::Context& context, const ModelInput& input);

}  // namespace page_reader
