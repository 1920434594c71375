#include "onnx/onnx_custom.h"

#include <algorithm>
#include <set>

#include "corelane/onnx/onnx_import.h"
#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_graph.h"
#include "onnx/graph/onnx_operators.h"
#include "onnx/infer/onnx_graph_facts.h"

namespace corelane::onnx {
namespace {

/// Operator domains that an engine knows: one of them or another.
bool is_engine_domain(const std::string& domain) {
  return is_onnx_domain(domain) || domain == "com.microsoft" || domain == "com.microsoft.nchwc" ||
         domain == "org.openvinotoolkit";
}

class CustomOperators {
 public:
  CustomOperators(const ::onnx::ModelProto& model, const std::vector<std::string>& declared)
      : declared_(declared.begin(), declared.end()) {
    // Out of the list: "*" names no type that must be found.
    every_ = declared_.erase(std::string(kEveryCustomOperator)) != 0;
    for (const auto& f : model.functions()) functions_.insert(f.domain() + ":" + f.name());
  }

  Status graph(const ::onnx::GraphProto& g) {
    for (int i = 0; i < g.node_size(); ++i) {
      const auto& node = g.node(i);
      if (is_declared(node)) {
        count(node);
      } else if (!is_engine_domain(node.domain()) &&
                 !functions_.contains(node.domain() + ":" + node.op_type())) {
        return error(
            Code::kUnsupportedModel,
            "node {}: the operator {} is not a standard one; to run it as a host "
            "operator, declare it: compile --custom-op {}, the option custom_operators, or "
            "in Python SessionOptions.add_custom_operator",
            node_text(node, i), op_text(node), op_text(node));
      }
      for (const auto* below : subgraphs(node)) CORELANE_TRY(graph(*below));
    }
    return {};
  }

  Result<std::vector<CustomOperatorDecl>> finish() {
    for (const auto& type : declared_) {
      // A declared type that nothing has is a slip of the pen, not a wish.
      if (used_.contains(type)) continue;
      return error(Code::kInvalidArgument,
                   "custom operator '{}' was declared, but no node of the model has that type",
                   type);
    }
    return std::move(found_);
  }

 private:
  bool is_declared(const ::onnx::NodeProto& node) {
    // With or without the domain: both ways of declaring are found.
    for (const auto& text : {node.op_type(), node.domain() + "." + node.op_type()}) {
      if (!declared_.contains(text)) continue;
      used_.insert(text);
      return true;
    }
    return every_ && is_unknown(node);
  }

  /// True for what neither a standard nor the model itself defines.
  bool is_unknown(const ::onnx::NodeProto& node) const {
    if (functions_.contains(node.domain() + ":" + node.op_type())) return false;
    if (is_standard_domain(node.domain())) return !is_standard_operator(node.op_type());
    return !is_engine_domain(node.domain());
  }

  void count(const ::onnx::NodeProto& node) {
    for (CustomOperatorDecl& found : found_) {
      if (found.type != node.op_type() || found.domain != node.domain()) continue;
      ++found.nodes;
      return;
    }
    found_.push_back({node.op_type(), node.domain(), 1});
  }

  std::set<std::string> declared_;
  bool every_ = false;
  std::set<std::string> used_;
  std::set<std::string> functions_;
  std::vector<CustomOperatorDecl> found_;
};

bool is_described(const ValueFacts& value) { return value.elem != 0 && value.shape; }

bool is_given(const ::onnx::AttributeProto& attribute) {
  using A = ::onnx::AttributeProto;
  constexpr A::AttributeType kGiven[] = {A::FLOAT,  A::INT,  A::STRING,
                                         A::FLOATS, A::INTS, A::STRINGS};
  return std::ranges::find(kGiven, attribute.type()) != std::end(kGiven);
}

/// Why the node cannot run as a host operator; empty where it can.
std::string refusal_of(const ::onnx::NodeProto& node, const FactsTable& facts) {
  for (const auto& attribute : node.attribute())
    if (!is_given(attribute))
      return fmt::format(
          "attribute '{}' is of kind {}; integers, floats, texts and lists of them "
          "are allowed: give it as one of these, or as an input",
          attribute.name(), static_cast<int>(attribute.type()));
  for (const auto& out : node.output())
    if (!is_described(facts.of(out)))
      return fmt::format(
          "nothing says what type and shape output '{}' has; add a value_info for it "
          "to the ONNX graph",
          out);
  return {};
}

/// An output that nothing describes gets what the engine would assume: the form of input 0.
void write_outputs(::onnx::NodeProto& node, const FactsTable& facts) {
  const ValueFacts unknown{.elem = ::onnx::TensorProto::FLOAT, .shape = Shape{Shape::kOpen}};
  const ValueFacts& first = facts.of(input_of(node, 0));
  std::vector<std::int64_t> dtypes;
  std::vector<std::string> shapes;
  for (const auto& out : node.output()) {
    const ValueFacts* value = &facts.of(out);
    if (!is_described(*value)) value = &first;
    if (!is_described(*value) && node.output_size() == 1 && node.input_size() > 0) return;
    if (!is_described(*value)) value = &unknown;
    // ONNX element types, in the order of the outputs; the shapes beside them as texts.
    dtypes.push_back(value->elem);
    std::string& text = shapes.emplace_back();
    for (const auto d : value->shape->dims())
      text += (text.empty() ? "" : ",") + (d == Shape::kOpen ? "?" : std::to_string(d));
  }
  set_attribute(node, "corelane_output_dtypes", dtypes);
  remove_attribute(node, "corelane_output_shapes");
  auto& a = *node.add_attribute();
  a.set_name("corelane_output_shapes");
  a.set_type(::onnx::AttributeProto::STRINGS);
  for (auto& s : shapes) a.add_strings(std::move(s));
}

class CustomOutputs {
 public:
  CustomOutputs(std::int64_t opset, ByteSpan constants,
                const std::vector<CustomOperatorDecl>& operators, bool every)
      : opset_(opset), constants_(constants), operators_(operators), every_(every) {}

  Status graph(::onnx::GraphProto& g) const {
    const FactsTable facts = facts_of(g, opset_, constants_);
    for (int i = 0; i < g.node_size(); ++i) {
      auto& node = *g.mutable_node(i);
      if (is_custom(node)) CORELANE_TRY(describe(node, i, facts));
      for (auto* below : mutable_subgraphs(node)) CORELANE_TRY(graph(*below));
    }
    return {};
  }

 private:
  bool is_custom(const ::onnx::NodeProto& node) const {
    return std::ranges::any_of(operators_, [&](const CustomOperatorDecl& op) {
      return op.type == node.op_type() && op.domain == node.domain();
    });
  }

  Status describe(::onnx::NodeProto& node, int position, const FactsTable& facts) const {
    const std::string refusal = refusal_of(node, facts);
    if (!refusal.empty() && !every_)
      return error(Code::kUnsupportedModel, "node {}: the custom operator {} cannot run: {}",
                   node_text(node, position), op_text(node), refusal);
    if (!refusal.empty()) set_attribute(node, "corelane_refusal", refusal);
    write_outputs(node, facts);
    return {};
  }

  std::int64_t opset_;
  ByteSpan constants_;
  const std::vector<CustomOperatorDecl>& operators_;
  bool every_;
};

}  // namespace

Status describe_custom_outputs(::onnx::ModelProto& model, ByteSpan constants,
                               const std::vector<CustomOperatorDecl>& operators,
                               const std::vector<std::string>& declared) {
  if (operators.empty()) return {};
  const bool every = std::ranges::find(declared, kEveryCustomOperator) != declared.end();
  return CustomOutputs(opset_of(model), constants, operators, every).graph(*model.mutable_graph());
}

Result<std::vector<CustomOperatorDecl>> find_custom_operators(
    const ::onnx::ModelProto& model, const std::vector<std::string>& declared) {
  CustomOperators operators(model, declared);
  CORELANE_TRY(operators.graph(model.graph()));
  return operators.finish();
}

}  // namespace corelane::onnx
