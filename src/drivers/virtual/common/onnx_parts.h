/// Reading and writing the ONNX messages that hold tensors and the descriptions of values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/wire.h"
#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "drivers/virtual/common/onnx_patch.h"

namespace corelane::drivers::virtual_npu {

/// TensorProto's numbers of the types that hold every index.
inline constexpr std::int64_t kInt32 = 6;
inline constexpr std::int64_t kInt64 = 7;

/// The description that a TensorProto gives of itself. Borrows from the message.
struct TensorFacts {
  std::string_view name;
  std::int64_t data_type = 0;
  std::vector<std::int64_t> dims;
  bool external = false;
  bool has_entries = false;  ///< Of external data, needed or not.
  std::string_view location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

/// Appends the integers of a repeated field, which may be packed or one by one.
Status read_integers(const WireField& field, std::vector<std::int64_t>& out);

/// kMalformed also when the data location is none that ONNX defines.
Result<TensorFacts> read_tensor(ByteSpan tensor);

/// The elements of a TensorProto of int32 or int64 whose bytes lie in it; nullopt for other
/// tensors, and for more than 64 elements.
/// `facts`: what read_tensor() has read of it.
Result<std::optional<std::vector<std::int64_t>>> read_small_integers(ByteSpan tensor,
                                                                     const TensorFacts& facts);

/// The bytes of a model whose graph `write` has written anew.
Result<std::string> rewrite_graph(ByteSpan model,
                                  const std::function<Result<std::string>(ByteSpan)>& write);

/// Appends an external_data entry to a TensorProto.
void append_external_entry(std::string& out, std::string_view key, std::string_view value);

/// Reads a ValueInfoProto; the type of anything but a tensor leaves elem_type 0.
Result<GraphValue> read_value(ByteSpan info);

/// A ValueInfoProto of a tensor; without a type when elem_type is 0.
std::string make_value(const GraphValue& value);

}  // namespace corelane::drivers::virtual_npu
