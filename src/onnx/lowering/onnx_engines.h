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
/// New constants stay in the graph. What the engine gets wrong all the same is a warning among the
/// findings and the reason in RewriteReport::unfit. kUnsupportedModel where the result would grow
/// beyond bounds, and the model is of no use any more: see unlowered(). kInvalidArgument for a
/// lowering that is not one of lowerings().
Result<RewriteReport> lower_model(::onnx::ModelProto& model, ByteSpan constants,
                                  const Lowering& lowering);

/// The report on a network that `why` keeps from being lowered: as it was given it is unfit for the
/// engine.
RewriteReport unlowered(const Status& why);

}  // namespace corelane::onnx
