#include "onnx/graph/onnx_proto.h"

#include <fmt/core.h>

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

}  // namespace

DType dtype_of(std::int32_t onnx_type) noexcept {
  switch (onnx_type) {
    case T::FLOAT:
      return DType::kF32;
    case T::FLOAT16:
      return DType::kF16;
    case T::BFLOAT16:
      return DType::kBF16;
    case T::DOUBLE:
      return DType::kF64;
    case T::INT4:
      return DType::kI4;
    case T::UINT4:
      return DType::kU4;
    case T::INT8:
      return DType::kI8;
    case T::UINT8:
      return DType::kU8;
    case T::INT16:
      return DType::kI16;
    case T::UINT16:
      return DType::kU16;
    case T::INT32:
      return DType::kI32;
    case T::UINT32:
      return DType::kU32;
    case T::INT64:
      return DType::kI64;
    case T::UINT64:
      return DType::kU64;
    case T::BOOL:
      return DType::kBool;
    case T::STRING:
      return DType::kString;
    default:
      return DType::kUndefined;
  }
}

std::int32_t onnx_type_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::kF32:
      return T::FLOAT;
    case DType::kF16:
      return T::FLOAT16;
    case DType::kBF16:
      return T::BFLOAT16;
    case DType::kF64:
      return T::DOUBLE;
    case DType::kI4:
      return T::INT4;
    case DType::kU4:
      return T::UINT4;
    case DType::kI8:
      return T::INT8;
    case DType::kU8:
      return T::UINT8;
    case DType::kI16:
      return T::INT16;
    case DType::kU16:
      return T::UINT16;
    case DType::kI32:
      return T::INT32;
    case DType::kU32:
      return T::UINT32;
    case DType::kI64:
      return T::INT64;
    case DType::kU64:
      return T::UINT64;
    case DType::kBool:
      return T::BOOL;
    case DType::kString:
      return T::STRING;
    case DType::kUndefined:
      return T::UNDEFINED;
  }
  return T::UNDEFINED;
}

std::size_t onnx_type_bits(std::int32_t onnx_type) noexcept {
  switch (onnx_type) {
    case T::UINT2:
    case T::INT2:
      return 2;
    case T::UINT4:
    case T::INT4:
    case T::FLOAT4E2M1:
      return 4;
    case T::FLOAT6E2M3:
    case T::FLOAT6E3M2:
      return 6;
    case T::UINT8:
    case T::INT8:
    case T::BOOL:
    case T::FLOAT8E4M3FN:
    case T::FLOAT8E4M3FNUZ:
    case T::FLOAT8E5M2:
    case T::FLOAT8E5M2FNUZ:
    case T::FLOAT8E8M0:
      return 8;
    case T::UINT16:
    case T::INT16:
    case T::FLOAT16:
    case T::BFLOAT16:
      return 16;
    case T::FLOAT:
    case T::INT32:
    case T::UINT32:
      return 32;
    case T::DOUBLE:
    case T::INT64:
    case T::UINT64:
    case T::COMPLEX64:
      return 64;
    case T::COMPLEX128:
      return 128;
    default:
      return 0;
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

std::string node_text(const ::onnx::NodeProto& node, int position) {
  if (!node.name().empty()) return node.name();
  for (const auto& out : node.output())
    if (!out.empty()) return fmt::format("#{} (-> {})", position, out);
  return fmt::format("#{}", position);
}

}  // namespace corelane::onnx
