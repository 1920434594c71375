#include "onnx/graph/onnx_proto.h"

#include <fmt/core.h>

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

}  // namespace

std::size_t onnx_type_bits(std::int32_t onnx_type) noexcept {
  switch (onnx_type) {
    case T::UINT2:
    case T::INT2:
      return 2;
    // Types that Corelane has none for are stored and handed on all the same.
    case T::FLOAT4E2M1:
      return 4;
    case T::FLOAT6E2M3:
    case T::FLOAT6E3M2:
      return 6;
    case T::COMPLEX64:
      return 64;
    case T::COMPLEX128:
      return 128;
    default:
      return dtype_bits(dtype_from_onnx(onnx_type));
  }
}

std::string onnx_type_name(std::int32_t onnx_type) {
  if (T::DataType_IsValid(onnx_type)) return T::DataType_Name(static_cast<T::DataType>(onnx_type));
  return fmt::format("type {}", onnx_type);
}

std::optional<Shape> shape_of(const ::onnx::TypeProto& type) {
  if (!type.has_tensor_type() || !type.tensor_type().has_shape()) return std::nullopt;
  std::vector<std::int64_t> dims;
  for (const auto& d : type.tensor_type().shape().dim()) {
    // A symbol, nothing at all, and the -1 of some exporters: open.
    const bool fixed = d.has_dim_value() && d.dim_value() >= 0;
    dims.push_back(fixed ? d.dim_value() : Shape::kOpen);
  }
  return Shape(std::move(dims));
}

std::int32_t elem_type_of(const ::onnx::TypeProto& type) {
  return type.has_tensor_type() ? type.tensor_type().elem_type() : 0;
}

std::string op_text(const ::onnx::NodeProto& node) {
  if (node.domain().empty() || node.domain() == "ai.onnx") return node.op_type();
  return node.domain() + "." + node.op_type();
}

/// Exporters leave names out; the position and an output find such a node in a viewer.
std::string node_text(const ::onnx::NodeProto& node, int position) {
  if (!node.name().empty()) return node.name();
  for (const auto& out : node.output())
    if (!out.empty()) return fmt::format("#{} (-> {})", position, out);
  return fmt::format("#{}", position);
}

}  // namespace corelane::onnx
