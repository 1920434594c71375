#include "drivers/virtual/common/onnx_parts.h"

#include <cstring>
#include <limits>
#include <utility>

#include "base/onnx_fields.h"
#include "corelane/tensor/dtype.h"
#include "corelane/tensor/value_type.h"

namespace corelane::drivers::virtual_npu {
namespace {

using enum onnx_fields::Number;

/// Decimal digits; the bound keeps the next digit from wrapping.
Result<std::uint64_t> parse_number(std::string_view text, std::string_view tensor) {
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || value > (std::numeric_limits<std::uint64_t>::max() - 9) / 10)
      return error(Code::kMalformed, "constant '{}': '{}' is not an offset or length", tensor,
                   text);
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

/// Keys that are not known, such as a checksum, are of no use to a device.
Status read_external_entry(ByteSpan entry, TensorFacts& facts) {
  std::string_view key;
  std::string_view value;
  for (WireReader fields(entry); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kEntryKey)) key = field.text();
    if (field.is_bytes(kEntryValue)) value = field.text();
  }
  if (key == "location") facts.location = value;
  if (key == "offset") {
    // The macro is two statements.
    CORELANE_ASSIGN(facts.offset, parse_number(value, facts.name));
  }
  if (key == "length") {
    // The macro is two statements.
    CORELANE_ASSIGN(facts.length, parse_number(value, facts.name));
  }
  return {};
}

/// TensorProto's fields of numbers that are no raw bytes.
constexpr std::uint32_t kInt32Data = 5;
constexpr std::uint32_t kInt64Data = 7;
constexpr std::size_t kMostSmall = 64;
constexpr std::size_t kLongestVarint = 10;

template <class T>
void append_raw_integers(ByteSpan raw, std::vector<std::int64_t>& out) {
  for (std::size_t at = 0; at + sizeof(T) <= raw.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, raw.data() + at, sizeof(T));
    out.push_back(value);
  }
}

}  // namespace

Status read_integers(const WireField& field, std::vector<std::int64_t>& out) {
  if (field.type == WireType::kVarint) {
    out.push_back(field.integer());
    return {};
  }
  for (WireReader packed(field.payload); !packed.at_end();) {
    CORELANE_ASSIGN(const std::uint64_t value, packed.varint());
    out.push_back(static_cast<std::int64_t>(value));
  }
  return {};
}

Result<std::optional<std::vector<std::int64_t>>> read_small_integers(ByteSpan tensor,
                                                                     const TensorFacts& facts) {
  if (facts.external || (facts.data_type != kInt32 && facts.data_type != kInt64))
    return std::nullopt;
  std::vector<std::int64_t> values;
  for (WireReader fields(tensor); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.payload.size() > kMostSmall * kLongestVarint) return std::nullopt;
    if (field.is_bytes(kTensorRawData)) {
      if (facts.data_type == kInt32) append_raw_integers<std::int32_t>(field.payload, values);
      if (facts.data_type == kInt64) append_raw_integers<std::int64_t>(field.payload, values);
    }
    if (field.number == kInt32Data || field.number == kInt64Data)
      CORELANE_TRY(read_integers(field, values));
    if (values.size() > kMostSmall) return std::nullopt;
  }
  return values;
}

Result<std::string> rewrite_graph(ByteSpan model,
                                  const std::function<Result<std::string>(ByteSpan)>& write) {
  std::string out;
  out.reserve(model.size());
  for (WireReader fields(model); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (!field.is_bytes(kModelGraph)) {
      append_raw(out, field.raw);
      continue;
    }
    CORELANE_ASSIGN(const std::string graph, write(field.payload));
    append_bytes_field(out, kModelGraph, graph);
  }
  return out;
}

/// A failure names the tensor, by "" where its name comes after the field that is wrong.
Result<TensorFacts> read_tensor(ByteSpan tensor) {
  TensorFacts facts;
  for (WireReader fields(tensor); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.number == kTensorDims) CORELANE_TRY(read_integers(field, facts.dims));
    if (field.is_varint(kTensorDataType)) facts.data_type = static_cast<std::int32_t>(field.value);
    if (field.is_bytes(kTensorName)) facts.name = field.text();
    if (field.is_varint(kTensorDataLocation)) {
      // Protobuf keeps the low 32 bits of an enumeration, and skips values that it does not know.
      const auto location = static_cast<std::uint32_t>(field.value);
      if (location != field.value || location > 1)
        return error(Code::kMalformed,
                     "constant '{}' has the data location {}; allowed are 0 (in the model) and 1 "
                     "(external)",
                     facts.name, field.value);
      facts.external = location == 1;
    }
    if (field.is_bytes(kTensorExternalData)) {
      facts.has_entries = true;
      CORELANE_TRY(read_external_entry(field.payload, facts));
    }
  }
  return facts;
}

void append_external_entry(std::string& out, std::string_view key, std::string_view value) {
  std::string entry;
  append_bytes_field(entry, kEntryKey, key);
  append_bytes_field(entry, kEntryValue, value);
  append_bytes_field(out, kTensorExternalData, entry);
}

/// Symbolic dimensions and negative values are open.
Result<GraphValue> read_value(ByteSpan info) {
  GraphValue value;
  const auto shape = [&](ByteSpan message) -> Status {
    value.has_shape = true;
    std::vector<std::int64_t> dims;
    for (WireReader fields(message); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      if (!field.is_bytes(kShapeDim)) continue;
      dims.push_back(Shape::kOpen);
      for (WireReader dim(field.payload); !dim.at_end();) {
        CORELANE_ASSIGN(const WireField part, dim.next());
        if (part.is_varint(kDimValue)) dims.back() = part.integer();
      }
      if (dims.back() < 0) dims.back() = Shape::kOpen;
    }
    value.shape = Shape(std::move(dims));
    return {};
  };
  const auto tensor_type = [&](ByteSpan message) -> Status {
    for (WireReader fields(message); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      if (field.is_varint(kTensorTypeElem)) value.elem_type = field.integer();
      if (field.is_bytes(kTensorTypeShape)) CORELANE_TRY(shape(field.payload));
    }
    return {};
  };
  for (WireReader fields(info); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kValueName)) value.name = field.text();
    if (!field.is_bytes(kValueType)) continue;
    // Values that are not tensors, and element types unknown here, are refused by their readers.
    value.type = read_onnx_type(field.payload).value_or(ValueType());
    for (WireReader types(field.payload); !types.at_end();) {
      CORELANE_ASSIGN(const WireField type, types.next());
      if (type.is_bytes(kTypeTensor)) CORELANE_TRY(tensor_type(type.payload));
    }
  }
  return value;
}

/// As read_value() reads it; open dimensions are empty messages.
std::string make_value(const GraphValue& value) {
  std::string out;
  append_bytes_field(out, kValueName, value.name);
  if (value.elem_type == 0) return out;
  std::string shape;
  for (const std::int64_t dim : value.shape.dims()) {
    std::string text;
    if (dim != Shape::kOpen) append_varint_field(text, kDimValue, static_cast<std::uint64_t>(dim));
    append_bytes_field(shape, kShapeDim, text);
  }
  std::string tensor;
  append_varint_field(tensor, kTensorTypeElem, static_cast<std::uint64_t>(value.elem_type));
  if (value.has_shape) append_bytes_field(tensor, kTensorTypeShape, shape);
  std::string type;
  append_bytes_field(type, kTypeTensor, tensor);
  append_bytes_field(out, kValueType, type);
  return out;
}

}  // namespace corelane::drivers::virtual_npu
