/// The inputs and outputs of a network as the device describes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"
#include "drivers/virtual/common/onnx_patch.h"

namespace corelane::drivers::virtual_npu {

/// Which element types an engine binds.
enum class BoundTypes : std::uint8_t {
  kNumbers,  ///< Tensors of what conversions read.
  kOpaque    ///< f8, f4, i2 and u2 as well, and values in their flat form.
};

/// `dtype`, where an engine that binds `types` takes it; else kUnsupportedModel naming the `role`
/// ("input", "output") and the value.
Result<DType> usable_dtype(const GraphValue& value, std::string_view role, DType dtype,
                           BoundTypes types);

/// A value that is bound in its flat form.
TensorDesc flat_desc(std::string name, ValueType type);

/// The inputs. kUnsupportedModel for one without a shape: a program without shapes cannot have its
/// tensors described.
Result<std::vector<TensorDesc>> describe_inputs(const std::vector<GraphValue>& values,
                                                BoundTypes types);

/// True where a program's `outputs` have each dimension that the image's `declared` ones have, and
/// their types. Users see the shapes that a program reports, and bind outputs in place where they
/// are fixed. An output of which a dimension is open anyway is known after a run only: where
/// `inputs` are open, too, its other dimensions may be open as well, and its rank where a number is
/// declared. True without declared ones.
bool knows_as_much(const std::vector<TensorDesc>& outputs, const std::vector<TensorDesc>& declared,
                   const std::vector<TensorDesc>& inputs);

}  // namespace corelane::drivers::virtual_npu
