/// What the examples of the scheduler ask: which way up does a page lie? Pictures become requests.
#pragma once

#include <any>
#include <span>

#include "corelane/base/status.h"
#include "corelane/scheduler/request.h"
#include "corelane/tensor/convert.h"
#include "corelane/tensor/tensor.h"
#include "page_orientation.h"
#include "picture.h"

namespace scheduler_example {

/// The pixels as the program takes them: f32, [1, 3, height, width], mean and deviation applied.
inline corelane::Result<corelane::Tensor> tensor_of(const page_reader::ModelInput& input) {
  const auto& pixels = input.pixels;
  corelane::TensorView from;
  from.data = pixels.bytes().data();
  from.size = pixels.bytes().size();
  from.dtype = corelane::DType::kU8;
  from.shape = {1, 3, pixels.height(), pixels.width()};
  from.layout.kind = corelane::LayoutKind::kNHWC;
  CORELANE_ASSIGN(auto tensor, corelane::Tensor::allocate("x", corelane::DType::kF32, from.shape));
  corelane::ConvertOptions convert;
  convert.mean = input.mean;
  convert.std = input.std;
  CORELANE_TRY(corelane::convert(from, tensor.mutable_view(), convert));
  return tensor;
}

/// One page as a tensor: `picture` turned clockwise by so many quarters.
inline corelane::Result<corelane::Tensor> turned_page(const page_reader::Picture& picture,
                                                      int quarters) {
  return tensor_of(page_reader::orientation_input(page_reader::turn(picture, -quarters)));
}

/// The values of a tensor of f32.
inline std::span<const float> floats(const corelane::Tensor& tensor) {
  return {static_cast<const float*>(tensor.data.get()), tensor.size / sizeof(float)};
}

/// The scores that came back with a request.
inline std::span<const float> scores_of(const corelane::scheduler::Dict& request) {
  return floats(std::any_cast<const corelane::Tensor&>(request.at(corelane::scheduler::kResult)));
}

}  // namespace scheduler_example
