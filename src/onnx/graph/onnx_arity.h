/// How many inputs and outputs a node must have. Private to this room.
#pragma once

#include "corelane/base/status.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// kMalformed when a node of an operator that the import looks into has fewer inputs or outputs
/// than any version of that operator demands. Ok for all other operators: the engine checks those.
Status check_arity(const ::onnx::NodeProto& node, int position);

}  // namespace corelane::onnx
