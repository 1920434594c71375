#include "onnx/infer/onnx_graph_facts.h"

#include <algorithm>

#include "onnx/infer/onnx_infer.h"

namespace corelane::onnx {

FactsTable facts_of(const ::onnx::GraphProto& graph, std::int64_t opset, ByteSpan constants) {
  FactsTable facts;
  for (const auto& t : graph.initializer()) facts.learn(t.name(), t, constants);
  for (const auto* list : {&graph.input(), &graph.output(), &graph.value_info()})
    for (const auto& v : *list) facts.learn(v);
  for (const auto& node : graph.node()) infer_node(node, opset, constants, facts);
  return facts;
}

void declare(::onnx::ValueInfoProto& value, const ValueFacts& known) {
  auto& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(known.elem);
  if (!known.shape) return;
  tensor.mutable_shape()->clear_dim();
  for (const std::int64_t dim : known.shape->dims()) {
    auto& added = *tensor.mutable_shape()->add_dim();
    if (dim != Shape::kOpen) added.set_dim_value(dim);
  }
}

void declare_untyped_outputs(::onnx::GraphProto& graph, std::int64_t opset, ByteSpan constants) {
  const auto untyped = [](const ::onnx::ValueInfoProto& value) {
    return value.type().value_case() == ::onnx::TypeProto::VALUE_NOT_SET;
  };
  if (std::ranges::none_of(graph.output(), untyped)) return;
  const FactsTable facts = facts_of(graph, opset, constants);
  for (auto& output : *graph.mutable_output())
    if (const ValueFacts& known = facts.of(output.name()); untyped(output) && known.elem != 0)
      declare(output, known);
}

}  // namespace corelane::onnx
