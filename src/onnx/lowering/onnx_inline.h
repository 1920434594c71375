/// Putting the nodes of a subgraph into the graph around it.
#pragma once

#include <map>
#include <string>

#include "onnx/lowering/onnx_rewriter.h"

namespace corelane::onnx {

/// Old name -> new name.
using Renames = std::map<std::string, std::string>;

/// Renames the inputs of a node, and what its subgraphs read or give out.
void rename_reads(::onnx::NodeProto& node, const Renames& renames);

/// Adds the nodes of `graph` under new names, its inputs bound to `inputs` (one each), and returns
/// the names of its outputs.
/// `constants`: what inline_constants returned, for as many copies as are made.
Names inline_graph(Rewriter& r, const ::onnx::GraphProto& graph, const Names& inputs,
                   Renames constants);

/// Adds the constants of `graph` under new names.
Renames inline_constants(Rewriter& r, const ::onnx::GraphProto& graph);

}  // namespace corelane::onnx
