#include "drivers/virtual/common/onnx_node.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/onnx_fields.h"
#include "base/wire.h"
#include "drivers/virtual/common/onnx_parts.h"

namespace corelane::drivers::virtual_npu {
namespace {

using enum onnx_fields::Number;

// AttributeProto.AttributeType.
enum : std::int64_t { kFloat = 1, kInt = 2, kString = 3, kFloats = 6, kInts = 7, kStrings = 8 };

/// The members of an AttributeProto.
struct AttributeFacts {
  std::string name;
  std::int64_t type = 0;
  float single_float = 0;
  std::int64_t single_int = 0;
  std::string single_string;
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::vector<std::string> strings;
};

/// Packed or one by one.
Status read_floats(const WireField& field, AttributeFacts& facts) {
  if (field.type == WireType::kFixed32) facts.floats.push_back(field.number_as_float());
  if (field.type != WireType::kBytes) return {};
  if (field.payload.size() % sizeof(float) != 0)
    return error(Code::kMalformed, "attribute '{}': {} bytes are not a list of floats", facts.name,
                 field.payload.size());
  const std::size_t old = facts.floats.size();
  facts.floats.resize(old + field.payload.size() / sizeof(float));
  if (!field.payload.empty())
    std::memcpy(facts.floats.data() + old, field.payload.data(), field.payload.size());
  return {};
}

/// If a field appears twice, the last one counts, as in protobuf.
Result<AttributeFacts> read_attribute(ByteSpan message) {
  AttributeFacts facts;
  for (WireReader fields(message); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kAttributeName)) facts.name = field.text();
    if (field.is_varint(kAttributeType)) facts.type = field.integer();
    if (field.number == kAttributeFloat) facts.single_float = field.number_as_float();
    if (field.is_varint(kAttributeInt)) facts.single_int = field.integer();
    if (field.is_bytes(kAttributeString)) facts.single_string = field.text();
    if (field.is_bytes(kAttributeStrings)) facts.strings.emplace_back(field.text());
    if (field.number == kAttributeFloats) CORELANE_TRY(read_floats(field, facts));
    if (field.number == kAttributeInts) CORELANE_TRY(read_integers(field, facts.ints));
  }
  return facts;
}

/// Names that begin with "corelane_" speak to this driver, not to the operator.
Status add_attribute(AttributeFacts facts, CustomNode& node) {
  if (facts.name == "corelane_output_dtypes") {
    for (const std::int64_t type : facts.ints) node.output_dtypes.push_back(dtype_from_onnx(type));
    return {};
  }
  if (facts.name == "corelane_output_shapes") {
    for (const std::string& text : facts.strings) {
      auto shape = text.empty() ? Result<Shape>(Shape{}) : parse_shape(text);
      if (!shape)
        return shape.error().wrap(Code::kMalformed, "output shape of custom operator '" +
                                                        node.type + "' (node '" + node.name + "')");
      node.output_shapes.push_back(std::move(*shape));
    }
    return {};
  }
  if (facts.name == "corelane_refusal") node.refusal = std::move(facts.single_string);
  if (facts.name.starts_with("corelane_")) return {};
  const auto give = [&](auto&& value) {
    node.attributes[facts.name] = std::forward<decltype(value)>(value);
  };
  switch (facts.type) {
    case kFloat:
      give(facts.single_float);
      break;
    case kInt:
      give(facts.single_int);
      break;
    case kString:
      give(std::move(facts.single_string));
      break;
    case kFloats:
      give(std::move(facts.floats));
      break;
    case kInts:
      give(std::move(facts.ints));
      break;
    case kStrings:
      give(std::move(facts.strings));
      break;
    default:
      if (!node.refusal.empty()) break;
      node.refusal = fmt::format(
          "attribute '{}' is of kind {}; allowed are integers, floats, texts "
          "and lists of them: give it as one of these, or as an input",
          facts.name, facts.type);
  }
  return {};
}

}  // namespace

Result<NodeLinks> read_links(ByteSpan node) {
  NodeLinks links;
  for (WireReader fields(node); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kNodeInput)) links.inputs.push_back(field.text());
    if (field.is_bytes(kNodeOutput) && links.output.empty()) links.output = field.text();
    if (field.is_bytes(kNodeName)) links.name = field.text();
    if (field.is_bytes(kNodeOpType)) links.op = field.text();
    if (field.is_bytes(kNodeDomain)) links.domain = normal_domain(field.text());
    if (field.is_bytes(kNodeAttribute)) links.attributes.push_back(field.payload);
  }
  return links;
}

/// Fields of other kinds than the schema says are skipped, as unknown ones are.
Result<NodeFacts> read_node(ByteSpan node) {
  NodeFacts facts;
  for (WireReader fields(node); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kNodeName)) facts.name = field.text();
    if (field.is_bytes(kNodeOpType)) facts.op_type = field.text();
    if (field.is_bytes(kNodeDomain)) facts.domain = field.text();
    if (field.is_bytes(kNodeOutput) && facts.first_output.empty())
      facts.first_output = field.text();
    if (!field.is_bytes(kNodeAttribute) || facts.has_nested) continue;
    for (WireReader parts(field.payload); !parts.at_end();) {
      CORELANE_ASSIGN(const WireField part, parts.next());
      parts.repeats(part);
      facts.has_nested |= part.is_bytes(kAttributeTensor) || part.is_bytes(kAttributeGraph) ||
                          part.is_bytes(kAttributeTensors) || part.is_bytes(kAttributeGraphs) ||
                          part.is_bytes(kAttributeSparse) || part.is_bytes(kAttributeSparses);
    }
  }
  return facts;
}

/// A node without a name is known by its first output, which is unique in a graph.
Result<CustomNode> read_custom_node(ByteSpan node) {
  CORELANE_ASSIGN(NodeFacts facts, read_node(node));
  CustomNode result;
  result.type = std::move(facts.op_type);
  result.domain = std::move(facts.domain);
  result.name = facts.name.empty() ? std::move(facts.first_output) : std::move(facts.name);
  for (WireReader fields(node); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kNodeInput)) ++result.input_count;
    if (field.is_bytes(kNodeOutput)) ++result.output_count;
    if (!field.is_bytes(kNodeAttribute)) continue;
    CORELANE_ASSIGN(AttributeFacts attribute, read_attribute(field.payload));
    CORELANE_TRY(add_attribute(std::move(attribute), result));
  }
  return result;
}

/// With its type, which onnx.proto makes mandatory.
std::string make_integer_attribute(std::string_view name, std::int64_t value) {
  std::string out;
  append_bytes_field(out, kAttributeName, name);
  append_varint_field(out, kAttributeInt, static_cast<std::uint64_t>(value));
  append_varint_field(out, kAttributeType, kInt);
  return out;
}

std::string_view normal_domain(std::string_view domain) noexcept {
  return domain == "ai.onnx" ? std::string_view{} : domain;
}

}  // namespace corelane::drivers::virtual_npu
