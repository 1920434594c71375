/// The order of nodes.
#pragma once

#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Puts the nodes of the model's graph, and of each graph in it, in an order in which every value
/// is made before it is read: of the nodes that are ready, always the one that the file names
/// first. A graph in which nodes read each other's values in a circle keeps its order. True when
/// anything changed.
bool sort_nodes(::onnx::ModelProto& model);

}  // namespace corelane::onnx
