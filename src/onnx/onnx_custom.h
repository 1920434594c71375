/// Custom operators: declared ones are described to the device, others refused.
#pragma once

#include <string>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/program/description.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// The operators of declared types ("MyOp" or "domain.MyOp"; "*": all that nothing defines), with
/// their counts, in a model as the engine gets it. kUnsupportedModel names a node whose operator is
/// in no standard domain and was not declared, kInvalidArgument a declared type of no node.
Result<std::vector<CustomOperatorDecl>> find_custom_operators(
    const ::onnx::ModelProto& model, const std::vector<std::string>& declared);

/// Sets `corelane_output_dtypes` and `corelane_output_shapes` ("1,3,?") of each such node, also in
/// subgraphs, from what is known of its outputs. kUnsupportedModel names a node of whose outputs
/// nothing says type and rank, or that has an attribute which is not a number, a text or a list
/// of them. Where `declared` has kEveryCustomOperator such a node gets the reason as
/// `corelane_refusal` instead, with which its runs fail.
Status describe_custom_outputs(::onnx::ModelProto& model, ByteSpan constants,
                               const std::vector<CustomOperatorDecl>& operators,
                               const std::vector<std::string>& declared);

}  // namespace corelane::onnx
