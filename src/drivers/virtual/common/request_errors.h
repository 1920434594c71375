/// Failures that every kind of request of this driver reports in the same words.
#pragma once

#include <cstddef>

#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"

namespace corelane::drivers::virtual_npu {

inline Status memory_too_small(const TensorDesc& output, std::size_t bytes, const Shape& shape,
                               std::size_t held) {
  return error(Code::kShapeMismatch,
               "output '{}' is {} bytes {}, the bound memory holds {}; bind a larger one",
               output.name, bytes, shape.to_string(), held);
}

inline Status no_shape_yet(const TensorDesc& output) {
  return error(Code::kWrongState, "output '{}' {} has no shape before a run", output.name,
               output.shape.to_string());
}

inline Status no_layer_times_yet() {
  return error(Code::kWrongState, "no layer times before the first run");
}

inline Status not_profiled() {
  return error(Code::kUnsupported,
               "this program was prepared without profile_layers; prepare it again with it");
}

}  // namespace corelane::drivers::virtual_npu
