/// What functions of a model come to where they are called. Private to this room.
#pragma once

#include "corelane/base/status.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// kMalformed where two functions have one name, one calls itself, by others too, or a call has
/// more inputs or outputs than its function, and for what check_attributes() says of a body with
/// the attributes of a call. kUnsupportedModel where the bodies of all calls together have more
/// than a million nodes, or calls and subgraphs are nested more than 128 deep. The bodies by
/// themselves are check_structure()'s to look at.
Status check_calls(const ::onnx::ModelProto& model);

}  // namespace corelane::onnx
