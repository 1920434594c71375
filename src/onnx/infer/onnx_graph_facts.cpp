#include "onnx/infer/onnx_graph_facts.h"

#include <algorithm>

#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_graph.h"
#include "onnx/infer/onnx_infer.h"

namespace corelane::onnx {
namespace {

FactsTable declared_in(const ::onnx::GraphProto& graph, ByteSpan constants) {
  FactsTable facts;
  for (const auto& t : graph.initializer()) facts.learn(t.name(), t, constants);
  for (const auto* list : {&graph.input(), &graph.output(), &graph.value_info()})
    for (const auto& v : *list) facts.learn(v);
  return facts;
}

/// What two declarations have in common: dimensions in which they differ are open.
ValueFacts common(const ::onnx::ValueInfoProto& a, const ::onnx::ValueInfoProto& b) {
  ValueFacts facts;
  facts.elem = elem_type_of(a.type());
  facts.shape = shape_of(a.type());
  const auto other = shape_of(b.type());
  if (facts.elem != elem_type_of(b.type())) return {};
  if (!facts.shape || !other || facts.shape->rank() != other->rank()) facts.shape.reset();
  for (std::size_t i = 0; facts.shape && i < facts.shape->rank(); ++i)
    if ((*facts.shape)[i] != (*other)[i]) (*facts.shape)[i] = Shape::kOpen;
  return facts;
}

/// Carried values come first; of the others each round makes one element.
void learn_loop(const ::onnx::GraphProto& body, const InferContext& c) {
  constexpr int kCounters = 2;  // The round and the condition, before the carried inputs.
  for (int i = 0; i < c.node.output_size() && i + 1 < body.output_size(); ++i) {
    const auto& out = body.output(i + 1);  // After the condition.
    if (i + kCounters < body.input_size()) {
      c.set(i, common(body.input(i + kCounters), out));
      continue;
    }
    ValueFacts each = common(out, out);
    if (each.shape) {
      std::vector<std::int64_t> dims = each.shape->dims();
      dims.insert(dims.begin(), Shape::kOpen);
      each.shape = Shape(std::move(dims));
    }
    c.set(i, std::move(each));
  }
}

void learn_bodies(const InferContext& c) {
  const auto bodies = subgraphs(c.node);
  if (!is_standard_domain(c.node.domain())) return;
  if (c.node.op_type() == "Loop" && bodies.size() == 1) learn_loop(*bodies.front(), c);
  if (c.node.op_type() != "If" || bodies.size() != 2) return;
  const auto& then = bodies.front()->output();
  const auto& other = bodies.back()->output();
  for (int i = 0; i < std::min({c.node.output_size(), then.size(), other.size()}); ++i)
    c.set(i, common(then[i], other[i]));
}

}  // namespace

FactsTable facts_of(const ::onnx::GraphProto& graph, std::int64_t opset, ByteSpan constants) {
  FactsTable facts = declared_in(graph, constants);
  for (const auto& node : graph.node()) infer_node(node, opset, constants, facts);
  return facts;
}

FactsTable facts_with_bodies_of(const ::onnx::GraphProto& graph, std::int64_t opset,
                                ByteSpan constants) {
  FactsTable facts = declared_in(graph, constants);
  for (const auto& node : graph.node()) {
    learn_bodies({node, opset, constants, facts});
    infer_node(node, opset, constants, facts);
  }
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
