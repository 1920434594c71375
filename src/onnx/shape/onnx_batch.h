/// Building a model for several copies of dimension 0.
#pragma once

#include <cstdint>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/program/description.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Multiplies dimension 0 of every input and output (1 or open) by `batch`, and changes Reshape
/// constants that name a leading 1. Follows where the copies lie from node to node.
/// kUnsupportedModel names the node that works along the copies, fixes their number, or moves them
/// off dimension 0 of an output; a node that cannot be followed becomes a warning.
Status apply_batch(::onnx::ModelProto& model, ByteSpan constants, std::uint32_t batch,
                   std::vector<ImportFinding>& findings);

}  // namespace corelane::onnx
