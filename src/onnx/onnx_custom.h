/// Custom operators: the ones that were declared are prepared for the engine, others refused.
#pragma once

#include <string>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/program/description.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// For each node of a declared type ("MyOp" or "domain.MyOp"; "*": all that nothing defines): sets
/// `corelane_output_dtypes` and `corelane_output_shapes` ("1,3,?") from what the graph says of its
/// outputs, and counts it. kUnsupportedModel names a node whose operator is in no standard domain
/// and was not declared, or whose outputs have no known type and shape where the engine cannot
/// assume input 0's.
Result<std::vector<CustomOperatorDecl>> prepare_custom_operators(
    ::onnx::ModelProto& model, const std::vector<std::string>& declared);

}  // namespace corelane::onnx
