#include "model_input.h"

#include <utility>

namespace page_reader {

ModelInput text_input(Picture pixels) {
  swap_red_blue(pixels);
  return {std::move(pixels), {127.5F}, {127.5F}};
}

// The published means are in the order red, green, blue, but the packages that carry these models
// apply them to blue, green, red; so do we, to see what the models saw.
ModelInput imagenet_input(Picture pixels) {
  swap_red_blue(pixels);
  return {std::move(pixels),
          {0.485F * 255, 0.456F * 255, 0.406F * 255},
          {0.229F * 255, 0.224F * 255, 0.225F * 255}};
}

corelane::Status feed(corelane::Context& context, const ModelInput& input) {
  const corelane::Shape shape{1, 3, input.pixels.height(), input.pixels.width()};
  CORELANE_TRY(context.set_input_shapes({shape}));
  corelane::TensorView view;
  view.data = input.pixels.bytes().data();
  view.size = input.pixels.bytes().size();
  view.dtype = corelane::DType::kU8;
  view.shape = shape;
  view.layout.kind = corelane::LayoutKind::kNHWC;
  corelane::ConvertOptions convert;
  convert.mean = input.mean;
  convert.std = input.std;
  return context.set_input(0, view, convert);
}

}  // namespace page_reader
