/// What nodes read.
#pragma once

#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

template <class F>
void for_each_read(const ::onnx::NodeProto& node, const F& f);

template <class F>
void for_each_read(const ::onnx::GraphProto& graph, const F& f) {
  for (const auto& node : graph.node()) for_each_read(node, f);
  for (const auto& out : graph.output()) f(out.name());
}

/// `f(name)` for all that a node reads, inside its subgraphs too: names of their own among it,
/// which no node around them makes.
template <class F>
void for_each_read(const ::onnx::NodeProto& node, const F& f) {
  for (const auto& in : node.input()) f(in);
  for (const auto& a : node.attribute()) {
    if (a.has_g()) for_each_read(a.g(), f);
    for (const auto& g : a.graphs()) for_each_read(g, f);
  }
}

}  // namespace corelane::onnx
