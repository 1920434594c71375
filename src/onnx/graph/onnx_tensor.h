/// The data of ONNX tensors: checked against their dimensions, and read as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Bytes of the tensor as raw data; kMalformed for overflow or an unknown element type. 0 for
/// strings.
Result<std::size_t> tensor_bytes(const ::onnx::TensorProto& tensor);

/// True when the data lie outside of the message.
bool is_external(const ::onnx::TensorProto& tensor);

/// Checks that data inside the message fit the dimensions and the element type. External tensors
/// are checked where they are resolved.
Status check_tensor(const ::onnx::TensorProto& tensor, std::string_view owner);

/// Moves typed data (float_data, ...) to raw little-endian data. The tensor has passed
/// check_tensor; strings and external tensors are left alone.
void make_raw(::onnx::TensorProto& tensor);

/// Where an external tensor says that its bytes lie.
struct ExternalPlace {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};
/// kMalformed where a number is none.
Result<ExternalPlace> external_place(const ::onnx::TensorProto& tensor);

/// Offset and length of a tensor in the constants; kMalformed when they leave it or the length is
/// not the tensor's.
Result<ByteSpan> constants_slice(const ::onnx::TensorProto& tensor, ByteSpan constants);

/// Values, wherever they lie, of a tensor that has passed make_raw: as integers (bool and integer
/// types), nullopt for other types.
std::optional<std::vector<std::int64_t>> read_ints(const ::onnx::TensorProto& tensor,
                                                   ByteSpan constants);
/// Values as doubles (f32, f16, bf16, f64 and integers).
std::optional<std::vector<double>> read_floats(const ::onnx::TensorProto& tensor,
                                               ByteSpan constants);

/// A tensor with raw data. `dims` empty: a scalar.
::onnx::TensorProto make_ints(std::string name, const std::vector<std::int64_t>& dims,
                              const std::vector<std::int64_t>& values);
/// Float values rounded to `onnx_type` (FLOAT, FLOAT16, BFLOAT16, DOUBLE, or an integer type).
::onnx::TensorProto make_values(std::string name, std::int32_t onnx_type,
                                const std::vector<std::int64_t>& dims,
                                const std::vector<double>& values);

}  // namespace corelane::onnx
