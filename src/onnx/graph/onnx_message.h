/// Which field of an ONNX message holds which message.
#pragma once

#include <cstdint>

namespace corelane::onnx {

/// What a length-delimited field holds, as far as nesting and the size in memory go.
enum class Kind : std::uint8_t {
  kBytes,    ///< Text or bytes, or a field that is not known.
  kPacked4,  ///< Varints that take 4 bytes each.
  kPacked8,
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparse,
  kValueInfo,
  kType,
  kTensorType,  ///< Of dense and sparse tensors.
  kHolder,      ///< A sequence or optional type.
  kMap,
  kShape,
  kSmall,  ///< Any other message: nothing below it but numbers and bytes.
  kFunction,
  kTraining,
  kAnnotation,
  kDeviceUse,
  kSharding,
  kShardedDim,
  kIntList,
};

/// True where messages may lie below; kBytes and the packed lists are not messages.
constexpr bool is_message(Kind kind) noexcept { return kind >= Kind::kModel; }

/// What the length-delimited field `number` of `parent` holds; kBytes for unknown ones.
Kind kind_of(Kind parent, std::uint32_t number) noexcept;

}  // namespace corelane::onnx
