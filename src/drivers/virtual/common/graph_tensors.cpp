#include "drivers/virtual/common/graph_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "corelane/tensor/value_type.h"

namespace corelane::drivers::virtual_npu {

Result<DType> usable_dtype(const GraphValue& value, std::string_view role, DType dtype,
                           BoundTypes types) {
  const bool opaque = types == BoundTypes::kOpaque;
  if (dtype != DType::kUndefined && dtype != DType::kString && (opaque || !is_opaque(dtype)))
    return dtype;
  if (!border_type(value.type, role == "input").empty())
    return error(Code::kUnsupportedModel, "{} '{}' is a {}; this engine takes tensors of numbers",
                 role, value.name, value.type.to_string());
  return error(Code::kUnsupportedModel,
               "{} '{}' has ONNX element type {}{}; this engine takes f32 f16 bf16 f64{}, {} to "
               "i64, {} to u64 and bool",
               role, value.name, value.elem_type,
               dtype == DType::kUndefined ? "" : fmt::format(" ({})", dtype_name(dtype)),
               opaque ? " f8 f4" : "", opaque ? "i2" : "i4", opaque ? "u2" : "u4");
}

TensorDesc flat_desc(std::string name, ValueType type) {
  TensorDesc desc;
  desc.name = std::move(name);
  desc.dtype = DType::kU8;
  desc.shape = Shape{Shape::kOpen};
  desc.value = std::move(type);
  return desc;
}

Result<std::vector<TensorDesc>> describe_inputs(const std::vector<GraphValue>& values,
                                                BoundTypes types) {
  std::vector<TensorDesc> descs;
  for (const GraphValue& value : values) {
    if (const ValueType type = border_type(value.type, true);
        types == BoundTypes::kOpaque && !type.empty()) {
      descs.push_back(flat_desc(value.name, type));
      continue;
    }
    TensorDesc desc;
    desc.name = value.name;
    CORELANE_ASSIGN(desc.dtype,
                    usable_dtype(value, "input", dtype_from_onnx(value.elem_type), types));
    if (!value.has_shape)
      return error(Code::kUnsupportedModel,
                   "input '{}' declares no rank; give its shape when compiling (--shape {}=...)",
                   value.name, value.name);
    desc.shape = value.shape;
    descs.push_back(std::move(desc));
  }
  return descs;
}

bool knows_as_much(const std::vector<TensorDesc>& outputs, const std::vector<TensorDesc>& declared,
                   const std::vector<TensorDesc>& inputs) {
  const auto is_open = [](const TensorDesc& desc) { return !desc.shape.is_static(); };
  const bool after_runs = std::ranges::any_of(inputs, is_open);
  return declared.empty() ||
         std::ranges::equal(outputs, declared, [&](const TensorDesc& a, const TensorDesc& b) {
           // A number, as far as the import knows, whose rank a run tells.
           if (after_runs && a.any_rank && b.shape.rank() == 0) return a.dtype == b.dtype;
           const bool may_be_open = after_runs && is_open(b);
           const auto same = [&](std::int64_t known, std::int64_t wanted) {
             return wanted == Shape::kOpen || known == wanted ||
                    (may_be_open && known == Shape::kOpen);
           };
           return a.dtype == b.dtype && std::ranges::equal(a.shape.dims(), b.shape.dims(), same);
         });
}

}  // namespace corelane::drivers::virtual_npu
