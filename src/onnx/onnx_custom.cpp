#include "onnx/onnx_custom.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "corelane/onnx/onnx_import.h"
#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_graph.h"
#include "onnx/graph/onnx_operators.h"

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

using Types = std::unordered_map<std::string, ::onnx::TypeProto>;

/// By value name. Outputs last: they are what the lowering may have completed.
Types types_of(const ::onnx::GraphProto& graph) {
  Types types;
  for (const auto* list : {&graph.value_info(), &graph.input(), &graph.output()})
    for (const auto& v : *list) types[v.name()] = v.type();
  return types;
}

Status write_outputs(::onnx::NodeProto& node, int position, const Types& types) {
  std::vector<std::int64_t> dtypes;
  std::vector<std::string> shapes;
  for (const auto& out : node.output()) {
    const auto type = types.find(out);
    const bool known = type != types.end() && elem_type_of(type->second) != 0;
    const auto shape = known ? shape_of(type->second) : std::nullopt;
    if (!shape) {
      // One output without a description is taken to be like input 0.
      if (node.output_size() == 1 && node.input_size() > 0) return {};
      return error(Code::kUnsupportedModel,
                   "node {}: nothing says what type and shape output '{}' of the custom "
                   "operator {} has; add a value_info for it to the ONNX graph",
                   node_text(node, position), out, op_text(node));
    }
    // ONNX element types, in the order of the outputs; the shapes beside them as texts.
    dtypes.push_back(elem_type_of(type->second));
    std::string text;
    for (const auto d : shape->dims())
      text += (text.empty() ? "" : ",") + (d == Shape::kOpen ? "?" : std::to_string(d));
    shapes.push_back(std::move(text));
  }
  set_attribute(node, "corelane_output_dtypes", dtypes);
  remove_attribute(node, "corelane_output_shapes");
  auto& a = *node.add_attribute();
  a.set_name("corelane_output_shapes");
  a.set_type(::onnx::AttributeProto::STRINGS);
  for (auto& s : shapes) a.add_strings(std::move(s));
  return {};
}

}  // namespace

Status describe_custom_outputs(::onnx::GraphProto& graph,
                               const std::vector<CustomOperatorDecl>& operators) {
  if (operators.empty()) return {};
  const Types types = types_of(graph);
  for (int i = 0; i < graph.node_size(); ++i) {
    auto& node = *graph.mutable_node(i);
    const auto is_custom = std::ranges::any_of(operators, [&](const CustomOperatorDecl& op) {
      return op.type == node.op_type() && op.domain == node.domain();
    });
    if (is_custom) CORELANE_TRY(write_outputs(node, i, types));
    for (auto* below : mutable_subgraphs(node))
      CORELANE_TRY(describe_custom_outputs(*below, operators));
  }
  return {};
}

Result<std::vector<CustomOperatorDecl>> find_custom_operators(
    const ::onnx::ModelProto& model, const std::vector<std::string>& declared) {
  CustomOperators operators(model, declared);
  CORELANE_TRY(operators.graph(model.graph()));
  return operators.finish();
}

}  // namespace corelane::onnx
