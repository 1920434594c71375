/// The generated ONNX classes, and what of their element types Corelane knows. Private to this
/// room.
#pragma once

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#include "onnx-ml.pb.h"
#pragma GCC diagnostic pop

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "corelane/tensor/dtype.h"
#include "corelane/tensor/shape.h"

namespace corelane::onnx {

/// The location of external data that lie in the program file's constants segment.
inline constexpr const char kConstantsLocation[] = "corelane:constants";
/// Tensors from this size on are moved to the constants.
inline constexpr std::size_t kExternalFrom = 1024;
inline constexpr std::size_t kConstantAlignment = 64;

/// Bits of one element as stored; 0 for strings and unknown types.
std::size_t onnx_type_bits(std::int32_t onnx_type) noexcept;
/// "FLOAT8E4M3FN", or "type 99".
std::string onnx_type_name(std::int32_t onnx_type);

/// The shape of a tensor type, open dimensions -1; nullopt when it declares none.
std::optional<Shape> shape_of(const ::onnx::TypeProto& type);
/// Element type of a tensor type, 0 when it is not a tensor.
std::int32_t elem_type_of(const ::onnx::TypeProto& type);

/// "MyOp" or "domain.MyOp".
std::string op_text(const ::onnx::NodeProto& node);
/// The node's name, or its first output's in quotes, or "#12" by its position.
std::string node_text(const ::onnx::NodeProto& node, int position);

}  // namespace corelane::onnx
