/// Initialisers that a graph has twice.
#pragma once

#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Of initialisers of one name, type and shape in a graph, the last one stays, as ONNX Runtime has
/// it; some exporters write one for each use. Those that differ in type or shape stay as they are.
/// True when anything changed.
bool drop_repeated_initializers(::onnx::ModelProto& model);

}  // namespace corelane::onnx
