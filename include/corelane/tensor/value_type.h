/// Where the types of inputs and outputs come from that are no plain tensors of numbers: tensors of
/// strings, tensors without a rank, sequences, maps, optionals.
#pragma once

#include <cstddef>
#include <string_view>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"

namespace corelane {

/// At most this many layers lie around a tensor.
inline constexpr std::size_t kMaxValueLayers = 8;

/// The inverse of ValueType::to_string(), without shape. kMalformed.
CORELANE_API Result<ValueType> parse_value_type(std::string_view text);

/// Reads ONNX's message TypeProto. An empty type where it says nothing; kMalformed;
/// kUnsupportedModel for sparse tensors, opaque types and element types without a number here.
CORELANE_API Result<ValueType> read_onnx_type(ByteSpan type_proto);

/// `declared` where such a value crosses the border in its flat form (corelane/tensor/value.h): all
/// but tensors of numbers whose rank is known. An output of numbers has one after each run.
CORELANE_API ValueType border_type(ValueType declared, bool is_input);

}  // namespace corelane
