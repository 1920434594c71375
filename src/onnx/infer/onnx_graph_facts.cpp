#include "onnx/infer/onnx_graph_facts.h"

namespace corelane::onnx {

FactsTable facts_of(const ::onnx::GraphProto& graph, std::int64_t opset, ByteSpan constants) {
  FactsTable facts;
  for (const auto& t : graph.initializer()) facts.learn(t.name(), t, constants);
  for (const auto* list : {&graph.input(), &graph.output(), &graph.value_info()})
    for (const auto& v : *list) facts.learn(v);
  for (const auto& node : graph.node()) infer_node(node, opset, constants, facts);
  return facts;
}

}  // namespace corelane::onnx
