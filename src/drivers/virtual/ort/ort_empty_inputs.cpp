#include "drivers/virtual/ort/ort_empty_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "base/onnx_fields.h"
#include "base/wire.h"
#include "drivers/virtual/common/integer_value.h"
#include "drivers/virtual/common/onnx_node.h"
#include "drivers/virtual/common/onnx_parts.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

using enum onnx_fields::Number;

constexpr std::uint32_t kAnyDim = ~0U;

struct Rule {
  std::string_view domain;
  std::string_view op;
  std::size_t input = 0;
  std::uint32_t dims = 0;
  std::size_t rank = 0;
  bool values = false;
};
constexpr std::string_view kMicrosoft = "com.microsoft";
constexpr Rule kRules[] = {
    // Heads.
    {"", "Attention", 0, 0b10, 4},
    {"", "Attention", 1, 0b10, 4},
    {"", "Attention", 2, 0b10, 4},
    {kMicrosoft, "MultiHeadAttention", 0, 0b100, 3},
    // Channels, without which it does not end.
    {"", "Conv", 0, 0b10},
    // Volumes; it writes past the output's end.
    {"", "ConvTranspose", 0, 0b11100, 5},
    // Scales of blocks.
    {"", "QuantizeLinear", 1, 0xFF},
    // Of slices along an axis.
    {"", "Unique", 0, 0xFE},
    // The window and the frame's length.
    {"", "STFT", 2, 0b1},
    {"", "STFT", 3, 0, 0, true},
};
constexpr std::string_view kRecurrent[] = {"GRU", "LSTM", "RNN"};

struct EmptyNode {
  std::string_view op;
  std::string_view domain;
  std::string_view name;
  std::vector<std::string_view> inputs;
  std::string_view output;
  ByteSpan constant;  ///< The last tensor among its attributes.
  std::string text() const { return fmt::format("{} ({})", name.empty() ? output : name, op); }
};

Result<ByteSpan> tensor_of(ByteSpan attribute) {
  ByteSpan tensor;
  for (WireReader fields(attribute); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kAttributeTensor)) tensor = field.payload;
  }
  return tensor;
}

Result<EmptyNode> read_empty_node(ByteSpan message) {
  EmptyNode node;
  for (WireReader fields(message); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kNodeOpType)) node.op = field.text();
    if (field.is_bytes(kNodeDomain)) node.domain = normal_domain(field.text());
    if (field.is_bytes(kNodeName)) node.name = field.text();
    if (field.is_bytes(kNodeInput)) node.inputs.push_back(field.text());
    if (field.is_bytes(kNodeOutput) && node.output.empty()) node.output = field.text();
    if (field.is_bytes(kNodeAttribute)) {
      // The macro is two statements.
      CORELANE_ASSIGN(node.constant, tensor_of(field.payload));
    }
  }
  return node;
}

/// Goes through the top graph, whose nodes are in order.
class Walk {
 public:
  explicit Walk(const std::vector<GraphValue>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) origin_[inputs[i].name] = i;
  }

  Status constant(std::string_view name, ByteSpan tensor, const TensorFacts& facts) {
    CORELANE_ASSIGN(const auto values, read_small_integers(tensor, facts));
    if (values && std::ranges::find(*values, 0) != values->end()) zeros_.push_back(name);
    return {};
  }

  Status see(const EmptyNode& node) {
    if (node.op == "Constant" && !node.constant.empty()) {
      CORELANE_ASSIGN(const TensorFacts facts, read_tensor(node.constant));
      return constant(node.output, node.constant, facts);
    }
    const bool moves = node.domain.empty() && (node.op == "Identity" || node.op == "Cast");
    if (moves && node.inputs.size() == 1) {
      const auto from = origin_.find(node.inputs[0]);
      if (from != origin_.end()) origin_[node.output] = from->second;
      if (std::ranges::find(zeros_, node.inputs[0]) != zeros_.end()) zeros_.push_back(node.output);
    }
    for (const Rule& rule : kRules)
      if (rule.op == node.op && rule.domain == node.domain && rule.input < node.inputs.size())
        CORELANE_TRY(apply(rule, node));
    return {};
  }

  std::vector<EmptyBound> take() { return std::move(bounds_); }

 private:
  Status apply(const Rule& rule, const EmptyNode& node) {
    const std::string_view name = node.inputs[rule.input];
    if (rule.values && std::ranges::find(zeros_, name) != zeros_.end())
      return error(Code::kUnsupportedModel,
                   "node {}: input {} is 0, by which ONNX Runtime divides; 1 or more is allowed",
                   node.text(), rule.input);
    if (const auto from = origin_.find(name); from != origin_.end())
      bounds_.push_back({from->second, rule.dims, rule.rank, rule.values, node.text()});
    return {};
  }

  std::map<std::string_view, std::size_t> origin_;  ///< Value -> the input that it comes from.
  std::vector<std::string_view> zeros_;             ///< Constants with a 0.
  std::vector<EmptyBound> bounds_;
};

void add_recurrent(const PatchedModel& model, std::vector<EmptyBound>& bounds) {
  for (const std::string_view op : kRecurrent) {
    const auto node = model.first_node.find(op);
    if (node == model.first_node.end()) continue;
    for (std::size_t i = 0; i < model.inputs.size(); ++i)
      if (is_float(dtype_from_onnx(model.inputs[i].elem_type)))
        bounds.push_back({i, kAnyDim, 0, false, fmt::format("{} ({})", node->second, op)});
    return;
  }
}

}  // namespace

Result<std::vector<EmptyBound>> empty_bounds(const PatchedModel& model) {
  const auto reads = [&](const Rule& rule) { return model.first_node.contains(rule.op); };
  std::vector<EmptyBound> bounds;
  if (std::ranges::any_of(kRules, reads)) {
    Walk walk(model.inputs);
    for (WireReader fields(as_byte_span(model.bytes)); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      if (!field.is_bytes(kModelGraph)) continue;
      // Constants may come after the nodes that read them.
      for (WireReader graph(field.payload); !graph.at_end();) {
        CORELANE_ASSIGN(const WireField part, graph.next());
        if (!part.is_bytes(kGraphInitializer)) continue;
        CORELANE_ASSIGN(const TensorFacts facts, read_tensor(part.payload));
        CORELANE_TRY(walk.constant(facts.name, part.payload, facts));
      }
      for (WireReader graph(field.payload); !graph.at_end();) {
        CORELANE_ASSIGN(const WireField part, graph.next());
        if (!part.is_bytes(kGraphNode)) continue;
        CORELANE_ASSIGN(const EmptyNode node, read_empty_node(part.payload));
        CORELANE_TRY(walk.see(node));
      }
    }
    bounds = walk.take();
  }
  add_recurrent(model, bounds);
  return bounds;
}

Status check_empty(const EmptyBound& bound, const std::string& input, DType dtype,
                   const Shape& shape, const void* data) {
  if (bound.values) {
    const bool holds = data != nullptr && shape.elements().value_or(0) > 0;
    if (holds && integer_at(dtype, data, 0) != 0) return {};
    return error(Code::kUnsupported,
                 "input '{}' is 0, and node {} divides by it; 1 or more is allowed", input,
                 bound.node)
        .with(Detail::kInput, input)
        .with(Detail::kNode, bound.node);
  }
  if (bound.rank != 0 && shape.rank() != bound.rank) return {};
  if (bound.dims == kAnyDim && shape.rank() < 2) return {};
  for (std::size_t i = 0; i < shape.rank(); ++i)
    if (shape[i] == 0 && (bound.dims >> std::min<std::size_t>(i, 31) & 1U) != 0)
      return error(Code::kUnsupported,
                   "input '{}' has shape {}, and node {} cannot run with 0 at dimension {} on ONNX "
                   "Runtime; leave such runs out",
                   input, shape.to_string(), bound.node, i)
          .with(Detail::kInput, input)
          .with(Detail::kNode, bound.node);
  return {};
}

}  // namespace corelane::drivers::virtual_npu::ort
