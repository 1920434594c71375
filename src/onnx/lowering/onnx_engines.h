/// Which engines networks are lowered for, and what is done for each.
#pragma once

#include <cstdint>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/onnx/onnx_lowering.h"
#include "corelane/program/description.h"
#include "onnx/graph/onnx_proto.h"
#include "onnx/lowering/onnx_rules.h"

namespace corelane::onnx {

/// What is done to a network for one engine: rules for single nodes, then a pass over the graph.
struct EngineRules {
  const RuleTable& nodes;
  void (*graph)(::onnx::GraphProto&, ByteSpan constants, std::vector<ImportFinding>&);
};

/// Lowers in place, and fills open dimensions of the outputs where they follow from the inputs.
/// New constants stay in the graph. With `refuse_known_wrong` false, what the engine gets wrong
/// becomes a warning among the findings instead of kUnsupportedModel. kInvalidArgument for a
/// lowering that is not one of lowerings().
Result<RewriteReport> lower_model(::onnx::ModelProto& model, ByteSpan constants,
                                  const Lowering& lowering, bool refuse_known_wrong);

}  // namespace corelane::onnx
