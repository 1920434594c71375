/// The inputs and outputs of a network as the device describes them.
#pragma once

#include <string_view>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"
#include "drivers/virtual/common/onnx_patch.h"

namespace corelane::drivers::virtual_npu {

/// `dtype`, where this device computes with it; else kUnsupportedModel naming the `role` ("input",
/// "output") and the value.
Result<DType> usable_dtype(const GraphValue& value, std::string_view role, DType dtype);

/// The inputs. kUnsupportedModel for one without a shape: a program without shapes cannot have its
/// tensors described.
Result<std::vector<TensorDesc>> describe_inputs(const std::vector<GraphValue>& values);

}  // namespace corelane::drivers::virtual_npu
