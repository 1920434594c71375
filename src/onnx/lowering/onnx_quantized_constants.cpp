#include "onnx/lowering/onnx_quantized_constants.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "onnx/graph/onnx_graph.h"

namespace corelane::onnx {
namespace {

enum class Origin { kFromInputs, kConstant, kQuantized };

using Origins = std::unordered_map<std::string_view, Origin>;

/// The network's inputs are neither initializers nor made by a node: not in `origins`.
Origin origin_of(const Origins& origins, const std::string& value) {
  const auto it = origins.find(value);
  return it == origins.end() ? Origin::kFromInputs : it->second;
}

Origin origin_of(const Origins& origins, const ::onnx::NodeProto& node) {
  if (!subgraphs(node).empty()) return Origin::kFromInputs;
  bool constant = true;
  bool quantized = node.op_type() == "QuantizeLinear";
  int from_inputs = 0;
  for (int i = 0; i < node.input_size(); ++i) {
    if (node.input(i).empty()) continue;
    const Origin origin = origin_of(origins, node.input(i));
    quantized = quantized || origin == Origin::kQuantized;
    if (origin != Origin::kFromInputs) continue;
    ++from_inputs;
    constant = constant && node.op_type() == "Where" && i > 0;
  }
  if (!constant || from_inputs > 1) return Origin::kFromInputs;
  return quantized ? Origin::kQuantized : Origin::kConstant;
}

}  // namespace

std::optional<ImportFinding> quantized_constant(const ::onnx::GraphProto& graph) {
  // Most networks have no such node, and pay nothing else.
  if (std::ranges::none_of(graph.node(),
                           [](const auto& node) { return node.op_type() == "QuantizeLinear"; }))
    return std::nullopt;
  Origins origins;
  for (const auto& tensor : graph.initializer()) origins.emplace(tensor.name(), Origin::kConstant);
  for (const auto& node : graph.node()) {
    const Origin origin = origin_of(origins, node);
    for (const auto& output : node.output()) origins.emplace(output, origin);
  }
  for (const auto& output : graph.output()) {
    if (origin_of(origins, output.name()) != Origin::kQuantized) continue;
    return ImportFinding{ImportFinding::Kind::kWarning, output.name(), "output",
                         "it is a quantized constant; the engine gives its integers"};
  }
  return std::nullopt;
}

}  // namespace corelane::onnx
