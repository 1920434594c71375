/// Building a model for several copies of dimension 0.
#pragma once

#include <cstdint>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/program/description.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// The name of the open dimension 0 that open_batch() writes.
inline constexpr const char* kBatchDimension = "batch";

/// Opens dimension 0 of every input and output (1 or open), for any size in `range`. A model whose
/// inputs all leave it open is taken at its word. Otherwise as apply_batch(), followed with a size
/// that no dimension has by chance; Reshape constants take their leading 1 from the data. Stricter
/// than that in one thing: an output that cannot be followed is refused, with the node where that
/// ends. kUnsupportedModel, also for another open dimension of an input.
Status open_batch(::onnx::ModelProto& model, ByteSpan constants, BatchRange range,
                  std::vector<ImportFinding>& findings);

/// Multiplies dimension 0 of every input and output (1 or open) by `batch`, and changes Reshape
/// constants that name a leading 1. Follows where the copies lie from node to node.
/// kUnsupportedModel names the node that works along the copies, fixes their number, or moves them
/// off dimension 0 of an output; a node that cannot be followed becomes a warning.
Status apply_batch(::onnx::ModelProto& model, ByteSpan constants, std::uint32_t batch,
                   std::vector<ImportFinding>& findings);

}  // namespace corelane::onnx
