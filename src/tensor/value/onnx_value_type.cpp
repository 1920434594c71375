// ONNX's message TypeProto: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
#include "base/onnx_fields.h"
#include "base/wire.h"
#include "corelane/tensor/value_type.h"

namespace corelane {
namespace {

using enum onnx_fields::Number;

/// More dimensions than any engine has.
constexpr std::size_t kMostDims = 64;

Status read_shape(ByteSpan message, ValueType& type) {
  std::vector<std::int64_t> dims;
  std::vector<std::string> names;
  for (WireReader fields(message); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (!field.is_bytes(kShapeDim)) continue;
    if (dims.size() == kMostDims)
      return error(Code::kMalformed, "a type declares more than {} dimensions", kMostDims);
    std::int64_t size = Shape::kOpen;
    std::string name;
    for (WireReader parts(field.payload); !parts.at_end();) {
      CORELANE_ASSIGN(const WireField part, parts.next());
      if (part.is_varint(kDimValue)) size = part.integer();
      if (part.is_bytes(kDimParam)) name = part.text();
    }
    dims.push_back(size < 0 ? Shape::kOpen : size);
    names.push_back(std::move(name));
  }
  type.shape = Shape(std::move(dims));
  type.dim_names = std::move(names);
  return {};
}

Status read_tensor_type(ByteSpan message, ValueType& type) {
  std::int64_t number = 0;
  for (WireReader fields(message); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_varint(kTensorTypeElem)) number = field.integer();
    if (field.is_bytes(kTensorTypeShape)) CORELANE_TRY(read_shape(field.payload, type));
  }
  type.element = dtype_from_onnx(number);
  if (!type.empty()) return {};
  return error(Code::kUnsupportedModel, "elements of ONNX type {}; no device computes with them",
               number);
}

/// The only message in a sequence or an optional, the second one in a map.
Result<ByteSpan> held_type(ByteSpan message, std::uint32_t number) {
  ByteSpan held;
  for (WireReader fields(message); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(number)) held = field.payload;
  }
  return held;
}

Result<DType> map_key(ByteSpan message) {
  std::int64_t number = 0;
  for (WireReader fields(message); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_varint(kMapKey)) number = field.integer();
  }
  const DType key = dtype_from_onnx(number);
  if (key == DType::kString || is_integer(key)) return key;
  return error(Code::kUnsupportedModel,
               "a map with keys of ONNX type {}; integers and strings are allowed", number);
}

}  // namespace

Result<ValueType> read_onnx_type(ByteSpan message) {
  ValueType type;
  for (;;) {
    WireField known;
    for (WireReader fields(message); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      // One of them at most is set; the last one counts, as in protobuf.
      if (field.type == WireType::kBytes && field.number != kTypeDenotation) known = field;
    }
    if (known.number == kTypeTensor) {
      CORELANE_TRY(read_tensor_type(known.payload, type));
      return type;
    }
    if (known.number == 0 && type.layers.empty()) return type;
    if (type.layers.size() == kMaxValueLayers)
      return error(Code::kMalformed, "a type of more than {} layers", kMaxValueLayers);
    ValueLayer layer;
    std::uint32_t within = kSequenceElem;
    if (known.number == kTypeOptional) {
      layer.kind = ValueKind::kOptional;
    } else if (known.number == kTypeMap) {
      layer.kind = ValueKind::kMap;
      within = kMapValue;
      // The macro is two statements.
      CORELANE_ASSIGN(layer.key, map_key(known.payload));
    } else if (known.number != kTypeSequence) {
      return error(Code::kUnsupportedModel,
                   "a sparse tensor, an opaque type or one without a content; tensors, sequences, "
                   "maps and optionals can be bound");
    }
    type.layers.push_back(layer);
    CORELANE_ASSIGN(message, held_type(known.payload, within));
  }
}

}  // namespace corelane
