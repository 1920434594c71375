/// Initialisers that a graph has twice.
#pragma once

#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Keeps only the last of several initialisers of one name, type and shape in a graph, as ONNX
/// Runtime does; some exporters write one for each use. If they differ in type or shape, all stay.
/// True when anything changed.
bool drop_repeated_initializers(::onnx::ModelProto& model);

}  // namespace corelane::onnx
