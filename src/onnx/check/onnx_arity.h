/// How many inputs and outputs a node may have. Private to this room.
#pragma once

#include <cstdint>

#include "corelane/base/status.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// kMalformed when a node of an operator of ONNX has fewer or more inputs or outputs than that has
/// in this version of its domain, or leaves out one that it needs: engines and rules index them
/// without asking. Ok for operators of other domains: the engine checks those.
Status check_arity(const ::onnx::NodeProto& node, int position, std::int64_t version);

}  // namespace corelane::onnx
