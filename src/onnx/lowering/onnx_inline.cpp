#include "onnx/lowering/onnx_inline.h"

namespace corelane::onnx {

void rename_reads(::onnx::NodeProto& node, const Renames& renames) {
  for (auto& in : *node.mutable_input())
    if (const auto it = renames.find(in); it != renames.end()) in = it->second;
  for (auto* below : mutable_subgraphs(node)) {
    for (auto& n : *below->mutable_node()) rename_reads(n, renames);
    for (auto& out : *below->mutable_output())
      if (const auto it = renames.find(out.name()); it != renames.end()) out.set_name(it->second);
  }
}

Renames inline_constants(Rewriter& r, const ::onnx::GraphProto& graph) {
  Renames renames;
  for (const auto& t : graph.initializer()) renames[t.name()] = r.add_constant(t);
  return renames;
}

Names inline_graph(Rewriter& r, const ::onnx::GraphProto& graph, const Names& inputs,
                   Renames renames) {
  for (int i = 0; i < graph.input_size(); ++i)
    renames[graph.input(i).name()] = inputs[static_cast<std::size_t>(i)];
  // In order, so that what a node reads has its new name already.
  for (const auto& original : graph.node()) {
    ::onnx::NodeProto inner = original;
    rename_reads(inner, renames);
    for (auto& out : *inner.mutable_output()) {
      if (out.empty()) continue;
      const std::string fresh = r.fresh_name(inner.op_type());
      renames[out] = fresh;
      out = fresh;
    }
    r.emit(std::move(inner));
  }
  Names outputs;
  for (const auto& out : graph.output()) {
    const auto it = renames.find(out.name());
    // An output that nothing inside makes is a value of the graph around it.
    outputs.push_back(it == renames.end() ? out.name() : it->second);
  }
  return outputs;
}

}  // namespace corelane::onnx
