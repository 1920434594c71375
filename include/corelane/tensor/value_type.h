/// Types of inputs and outputs that are no plain tensors of numbers: tensors of strings, tensors
/// without a rank, sequences, maps, optionals.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/tensor/dtype.h"
#include "corelane/tensor/shape.h"

namespace corelane {

enum class ValueKind : std::uint8_t { kTensor = 1, kSequence = 2, kMap = 3, kOptional = 4 };

/// One layer around a tensor.
struct ValueLayer {
  ValueKind kind = ValueKind::kSequence;
  DType key = DType::kUndefined;  ///< Of a map; else undefined.
  bool operator==(const ValueLayer&) const = default;
};

/// What a value is: layers, the outermost first, around a tensor. A default-made one stands for an
/// ordinary tensor, of which TensorDesc says everything. A value; any thread.
struct CORELANE_API ValueType {
  std::vector<ValueLayer> layers;
  DType element = DType::kUndefined;   ///< Of the tensor within; kString is one.
  std::optional<Shape> shape;          ///< Declared of that tensor; nullopt: of any rank.
  std::vector<std::string> dim_names;  ///< As TensorDesc::dim_names.

  /// True for an ordinary tensor.
  bool empty() const noexcept { return element == DType::kUndefined; }
  /// True for a tensor, of strings or of numbers.
  bool is_tensor() const noexcept { return !empty() && layers.empty(); }
  /// The outermost kind.
  ValueKind kind() const noexcept { return layers.empty() ? ValueKind::kTensor : layers[0].kind; }
  /// The type within the outermost layer; of a tensor, an empty one.
  ValueType inner() const;
  /// In ONNX's words: "seq(map(int64,tensor(float)))"; "" for an ordinary tensor.
  std::string to_string() const;
  bool operator==(const ValueType&) const = default;
};

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
