#include "drivers/virtual/ort/ort_quotients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/onnx_fields.h"
#include "base/wire.h"
#include "drivers/virtual/common/onnx_node.h"
#include "drivers/virtual/common/onnx_parts.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

using enum onnx_fields::Number;

/// TensorProto's numbers of types.
constexpr std::int64_t kInt32 = 6;
constexpr std::int64_t kInt64 = 7;

/// Operators whose first output has the type of their first input, or of what that holds: of
/// sequences and optionals the type of their tensors is known.
constexpr std::string_view kTypeKeepers[] = {"Abs",
                                             "Add",
                                             "BitShift",
                                             "BitwiseAnd",
                                             "BitwiseNot",
                                             "BitwiseOr",
                                             "BitwiseXor",
                                             "CenterCropPad",
                                             "Clip",
                                             "Compress",
                                             "Concat",
                                             "ConcatFromSequence",
                                             "CumProd",
                                             "CumSum",
                                             "DepthToSpace",
                                             "Div",
                                             "Einsum",
                                             "Expand",
                                             "Flatten",
                                             "Gather",
                                             "GatherElements",
                                             "GatherND",
                                             "Gemm",
                                             "Identity",
                                             "MatMul",
                                             "Max",
                                             "MaxPool",
                                             "Mean",
                                             "Min",
                                             "Mod",
                                             "Mul",
                                             "Neg",
                                             "Optional",
                                             "OptionalGetElement",
                                             "Pad",
                                             "Pow",
                                             "Range",
                                             "ReduceL1",
                                             "ReduceL2",
                                             "ReduceMax",
                                             "ReduceMean",
                                             "ReduceMin",
                                             "ReduceProd",
                                             "ReduceSum",
                                             "ReduceLogSum",
                                             "Reshape",
                                             "ReduceSumSquare",
                                             "ReverseSequence",
                                             "Scatter",
                                             "ScatterND",
                                             "SequenceAt",
                                             "SequenceConstruct",
                                             "SequenceErase",
                                             "Sign",
                                             "ScatterElements",
                                             "Slice",
                                             "SpaceToDepth",
                                             "Split",
                                             "SplitToSequence",
                                             "Squeeze",
                                             "Sub",
                                             "Sum",
                                             "Tile",
                                             "TopK",
                                             "Transpose",
                                             "Trilu",
                                             "Unique",
                                             "Unsqueeze"};
constexpr std::string_view kMakeInt64[] = {
    "ArgMax", "ArgMin", "NonMaxSuppression", "NonZero", "SequenceLength", "Shape", "Size"};
constexpr std::string_view kMakeInt32[] = {"ConvInteger", "MatMulInteger"};

/// What is known of a value.
struct Known {
  std::int64_t type = 0;  ///< 0: nothing.
  bool never_minus_one = false;
};

struct Node {
  std::string_view op;
  std::string_view name;
  std::string_view domain;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::int64_t to = 0;                   ///< Of a Cast; of a LabelEncoder that makes integers.
  ByteSpan constant;                     ///< Of a Constant, or what other nodes give.
  std::vector<std::int64_t> integers;    ///< Of a Constant: `value_int` or `value_ints`.
  std::vector<std::string_view> copied;  ///< Attributes as they are.
  bool has_graph = false;                ///< Graphs within it.
};

/// What is known of a constant that is a TensorProto.
Result<Known> read_constant(ByteSpan tensor, const TensorFacts& facts) {
  CORELANE_ASSIGN(const auto values, read_small_integers(tensor, facts));
  return Known{facts.data_type, values && std::ranges::find(*values, -1) == values->end()};
}

Status read_attribute(ByteSpan message, Node& node) {
  std::string_view name;
  std::vector<std::int64_t> integers;
  ByteSpan tensor;
  for (WireReader fields(message); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kAttributeName)) name = field.text();
    if (field.number == kAttributeInt || field.number == kAttributeInts)
      CORELANE_TRY(read_integers(field, integers));
    if (field.is_bytes(kAttributeTensor)) tensor = field.payload;
    if (field.is_bytes(kAttributeGraph) || field.is_bytes(kAttributeGraphs)) node.has_graph = true;
  }
  if (!tensor.empty() && name != "keys_tensor") node.constant = tensor;
  if (name == "to" && !integers.empty()) node.to = integers.back();
  if (name == "values_int64s") node.to = kInt64;
  if (name == "value_int" || name == "value_ints") node.integers = std::move(integers);
  return {};
}

Result<Node> read(ByteSpan message) {
  Node node;
  for (WireReader fields(message); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kNodeOpType)) node.op = field.text();
    if (field.is_bytes(kNodeName)) node.name = field.text();
    if (field.is_bytes(kNodeDomain)) node.domain = normal_domain(field.text());
    if (field.is_bytes(kNodeInput)) node.inputs.push_back(field.text());
    if (field.is_bytes(kNodeOutput)) node.outputs.push_back(field.text());
  }
  // The operator may come after its attributes.
  for (WireReader fields(message); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (!field.is_bytes(kNodeAttribute)) continue;
    node.copied.push_back(field.text());
    CORELANE_TRY(read_attribute(field.payload, node));
  }
  return node;
}

/// The types of one graph's values, and its nodes in other nodes.
class GraphWriter {
 public:
  /// `names`: counts those that are made, in all graphs of the network.
  GraphWriter(const GraphWriter* outer, std::size_t& names, int depth)
      : outer_(outer), names_(names), depth_(depth) {}

  Result<std::string> graph(ByteSpan message) {
    CORELANE_TRY(check_wire_depth(depth_));
    CORELANE_TRY(learn(message));
    std::string out;
    out.reserve(message.size());
    for (WireReader fields(message); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      if (field.is_bytes(kGraphNode))
        CORELANE_TRY(write(out, field));
      else
        append_raw(out, field.raw);
    }
    return out;
  }

 private:
  Status learn(ByteSpan message) {
    for (WireReader fields(message); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      if (field.is_bytes(kGraphInitializer)) {
        CORELANE_ASSIGN(const TensorFacts facts, read_tensor(field.payload));
        CORELANE_ASSIGN(known_[std::string(facts.name)], read_constant(field.payload, facts));
      } else if (field.is_bytes(kGraphInput) || field.is_bytes(kGraphValueInfo) ||
                 field.is_bytes(kGraphOutput)) {
        CORELANE_ASSIGN(GraphValue value, read_value(field.payload));
        // A constant may be listed as an input, too.
        Known& known = known_[value.name];
        if (known.type == 0) known.type = value.elem_type;
        if (known.type == 0 && value.type.element == DType::kI32) known.type = kInt32;
        if (known.type == 0 && value.type.element == DType::kI64) known.type = kInt64;
      }
    }
    return {};
  }

  Known of(std::string_view name) const {
    if (const auto found = known_.find(name); found != known_.end()) return found->second;
    return outer_ != nullptr ? outer_->of(name) : Known();
  }

  Status write(std::string& out, const WireField& field) {
    CORELANE_ASSIGN(const Node node, read(field.payload));
    const bool quotient = node.op == "Div" || node.op == "Mod";
    if (node.has_graph)
      CORELANE_TRY(write_inner(out, field.payload));
    else if (quotient && needs_guard(node))
      guard(out, node);
    else
      append_raw(out, field.raw);
    return learn_outputs(node);
  }

  /// With the graphs within it.
  Status write_inner(std::string& out, ByteSpan message) {
    std::string node;
    for (WireReader fields(message); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      if (!field.is_bytes(kNodeAttribute)) {
        append_raw(node, field.raw);
        continue;
      }
      std::string attribute;
      for (WireReader parts(field.payload); !parts.at_end();) {
        CORELANE_ASSIGN(const WireField part, parts.next());
        if (!part.is_bytes(kAttributeGraph) && !part.is_bytes(kAttributeGraphs)) {
          append_raw(attribute, part.raw);
          continue;
        }
        CORELANE_ASSIGN(const std::string inner,
                        GraphWriter(this, names_, depth_ + 3).graph(part.payload));
        append_bytes_field(attribute, part.number, inner);
      }
      append_bytes_field(node, kNodeAttribute, attribute);
    }
    append_bytes_field(out, kGraphNode, node);
    return {};
  }

  /// Either operand may be the one whose type is known, or the result, which may be declared.
  std::int64_t type_of_quotient(const Node& node) const {
    return std::max({of(node.inputs[0]).type, of(node.inputs[1]).type, of(node.outputs[0]).type});
  }

  bool needs_guard(const Node& node) const {
    if (!node.domain.empty() || node.inputs.size() != 2 || node.outputs.size() != 1) return false;
    const std::int64_t type = type_of_quotient(node);
    return (type == kInt32 || type == kInt64) && !of(node.inputs[1]).never_minus_one;
  }

  /// With n, 1 where the divisor is -1 and else 0: q = a / (b + 2 n), and q - 2 n q is the
  /// quotient; the rest of a by b + 2 n is the rest, 0 by 1. Operators that all operator sets have.
  void guard(std::string& out, const Node& node) {
    const std::int64_t type = type_of_quotient(node);
    const auto made = [&](std::string_view op, const std::vector<std::string_view>& inputs,
                          std::string_view attribute = {}) {
      std::string name = fmt::format("corelane:quotient:{}:{}", names_++, node.outputs[0]);
      append_node(out, op, inputs, name, name, {attribute});
      return name;
    };
    const std::string minus_one = made("Constant", {}, constant(type, -1));
    const std::string two = made("Constant", {}, constant(type, 2));
    const std::string is_minus_one = made("Equal", {node.inputs[1], minus_one});
    const std::string n = made("Cast", {is_minus_one}, make_integer_attribute("to", type));
    const std::string twice = made("Mul", {n, two});
    const std::string divisor = made("Add", {node.inputs[1], twice});
    if (node.op == "Mod") {
      append_node(out, "Mod", {node.inputs[0], divisor}, node.outputs[0], node.name, node.copied);
      return;
    }
    // By its own name, under which a division by 0 is reported.
    const std::string quotient = fmt::format("corelane:quotient:{}:{}", names_++, node.outputs[0]);
    append_node(out, "Div", {node.inputs[0], divisor}, quotient, node.name, {});
    const std::string change = made("Mul", {quotient, twice});
    append_node(out, "Sub", {quotient, change}, node.outputs[0],
                fmt::format("corelane:quotient:{}", node.outputs[0]), {});
  }

  static void append_node(std::string& out, std::string_view op,
                          const std::vector<std::string_view>& inputs, std::string_view output,
                          std::string_view name, const std::vector<std::string_view>& attributes) {
    std::string node;
    for (const std::string_view input : inputs) append_bytes_field(node, kNodeInput, input);
    append_bytes_field(node, kNodeOutput, output);
    append_bytes_field(node, kNodeName, name);
    append_bytes_field(node, kNodeOpType, op);
    for (const std::string_view attribute : attributes)
      if (!attribute.empty()) append_bytes_field(node, kNodeAttribute, attribute);
    append_bytes_field(out, kGraphNode, node);
  }

  /// The attribute of a Constant with one number.
  static std::string constant(std::int64_t type, std::int64_t value) {
    std::string tensor;
    append_varint_field(tensor, kTensorDataType, static_cast<std::uint64_t>(type));
    std::string raw(type == kInt32 ? 4 : 8, '\0');
    std::memcpy(raw.data(), &value, raw.size());  // The low bytes come first.
    append_bytes_field(tensor, kTensorRawData, raw);
    constexpr std::uint64_t kTensorKind = 4;
    std::string attribute;
    append_bytes_field(attribute, kAttributeName, "value");
    append_bytes_field(attribute, kAttributeTensor, tensor);
    append_varint_field(attribute, kAttributeType, kTensorKind);
    return attribute;
  }

  Result<Known> first_output(const Node& node) const {
    const auto is_in = [&](const auto& list) {
      return std::ranges::find(list, node.op) != std::end(list);
    };
    const auto type_of = [&](std::size_t input) {
      return Known{input < node.inputs.size() ? of(node.inputs[input]).type : 0, false};
    };
    if (node.op == "Constant" && !node.integers.empty())
      return Known{kInt64, std::ranges::find(node.integers, -1) == node.integers.end()};
    if (node.op == "LabelEncoder" && node.to != 0) return Known{node.to, false};
    if (node.op == "Constant" || node.op == "ConstantOfShape" || node.op == "LabelEncoder") {
      if (node.constant.empty()) return Known();
      CORELANE_ASSIGN(const TensorFacts facts, read_tensor(node.constant));
      return read_constant(node.constant, facts);
    }
    if (node.op == "Cast") return Known{node.to, false};
    if (node.op == "CastLike") return type_of(1);
    if (node.op == "Where") return type_of(1).type != 0 ? type_of(1) : type_of(2);
    if (node.op == "OneHot") return type_of(2);
    if (node.op == "SequenceInsert") return type_of(1);
    if (is_in(kMakeInt64)) return Known{kInt64, false};
    if (is_in(kMakeInt32)) return Known{kInt32, false};
    return is_in(kTypeKeepers) ? type_of(0) : Known();
  }

  /// The places of what else came out.
  static bool makes_places(const Node& node, std::size_t output) {
    return (node.op == "TopK" && output == 1) || (node.op == "MaxPool" && output == 1) ||
           (node.op == "Unique" && output > 0);
  }

  Status learn_outputs(const Node& node) {
    const bool labels = node.domain == "ai.onnx.ml" && node.op == "LabelEncoder";
    if ((!node.domain.empty() && !labels) || node.outputs.empty()) return {};
    CORELANE_ASSIGN(const Known first, first_output(node));
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      Known known = makes_places(node, i) ? Known{kInt64, false} : Known();
      if (i == 0 || node.op == "Split") known = first;
      if (known.type != 0) known_[std::string(node.outputs[i])] = known;
    }
    return {};
  }

  const GraphWriter* outer_;
  std::size_t& names_;
  const int depth_;
  std::map<std::string, Known, std::less<>> known_;
};

}  // namespace

Status guard_quotients(PatchedModel& model) {
  if (!model.first_node.contains("Div") && !model.first_node.contains("Mod")) return {};
  std::size_t names = 0;
  CORELANE_ASSIGN(std::string out, rewrite_graph(as_byte_span(model.bytes), [&](ByteSpan graph) {
                    return GraphWriter(nullptr, names, 1).graph(graph);
                  }));
  if (names == 0) return {};
  model.bytes = std::move(out);
  model.nodes += names;
  return {};
}

}  // namespace corelane::drivers::virtual_npu::ort
