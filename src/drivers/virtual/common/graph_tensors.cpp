#include "drivers/virtual/common/graph_tensors.h"

#include <utility>

namespace corelane::drivers::virtual_npu {

Result<DType> usable_dtype(const GraphValue& value, std::string_view role, DType dtype) {
  if (dtype == DType::kUndefined || dtype == DType::kString)
    return error(Code::kUnsupportedModel,
                 "{} '{}' has ONNX element type {}; this device takes f32 f16 bf16 f64, i4 to i64, "
                 "u4 to u64 and bool",
                 role, value.name, value.elem_type);
  return dtype;
}

Result<std::vector<TensorDesc>> describe_inputs(const std::vector<GraphValue>& values) {
  std::vector<TensorDesc> descs;
  for (const GraphValue& value : values) {
    if (!value.has_shape)
      return error(Code::kUnsupportedModel,
                   "input '{}' declares no shape; give one in PrepareOptions::input_shapes",
                   value.name);
    TensorDesc desc;
    desc.name = value.name;
    CORELANE_ASSIGN(desc.dtype, usable_dtype(value, "input", dtype_from_onnx(value.elem_type)));
    desc.shape = value.shape;
    descs.push_back(std::move(desc));
  }
  return descs;
}

}  // namespace corelane::drivers::virtual_npu
