/// Visits every graph, node and tensor of a model, those of subgraphs and functions included.
#pragma once

#include "onnx/graph/onnx_graph.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Calls `f(graph)` for the graph and then for each subgraph below it.
template <class F>
void for_each_graph(::onnx::GraphProto& graph, const F& f) {
  f(graph);
  for (auto& node : *graph.mutable_node())
    for (auto* below : mutable_subgraphs(node)) for_each_graph(*below, f);
}

namespace detail {

template <class F>
void visit_attribute_tensors(::onnx::AttributeProto& attribute, const F& f);

template <class F>
void visit_sparse(::onnx::SparseTensorProto& sparse, const F& f) {
  f(*sparse.mutable_values());
  f(*sparse.mutable_indices());
}

template <class F>
void visit_graph_tensors(::onnx::GraphProto& graph, const F& f) {
  for (auto& t : *graph.mutable_initializer()) f(t);
  for (auto& s : *graph.mutable_sparse_initializer()) visit_sparse(s, f);
  for (auto& node : *graph.mutable_node())
    for (auto& a : *node.mutable_attribute()) visit_attribute_tensors(a, f);
}

template <class F>
void visit_attribute_tensors(::onnx::AttributeProto& attribute, const F& f) {
  if (attribute.has_t()) f(*attribute.mutable_t());
  for (auto& t : *attribute.mutable_tensors()) f(t);
  if (attribute.has_sparse_tensor()) visit_sparse(*attribute.mutable_sparse_tensor(), f);
  for (auto& s : *attribute.mutable_sparse_tensors()) visit_sparse(s, f);
  if (attribute.has_g()) visit_graph_tensors(*attribute.mutable_g(), f);
  for (auto& g : *attribute.mutable_graphs()) visit_graph_tensors(g, f);
}

}  // namespace detail

/// Calls `f(tensor)` for each TensorProto of the model.
template <class F>
void for_each_tensor(::onnx::ModelProto& model, const F& f) {
  if (model.has_graph()) detail::visit_graph_tensors(*model.mutable_graph(), f);
  for (auto& training : *model.mutable_training_info()) {
    if (training.has_initialization())
      detail::visit_graph_tensors(*training.mutable_initialization(), f);
    if (training.has_algorithm()) detail::visit_graph_tensors(*training.mutable_algorithm(), f);
  }
  for (auto& function : *model.mutable_functions()) {
    for (auto& node : *function.mutable_node())
      for (auto& a : *node.mutable_attribute()) detail::visit_attribute_tensors(a, f);
    for (auto& a : *function.mutable_attribute_proto()) detail::visit_attribute_tensors(a, f);
  }
}

}  // namespace corelane::onnx
