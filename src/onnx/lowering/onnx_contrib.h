/// Operators of com.microsoft that an engine takes and computes wrongly.
#pragma once

#include "onnx/graph/onnx_proto.h"
#include "onnx/infer/onnx_facts.h"

namespace corelane::onnx {

/// What OpenVINO gets wrong in a node of com.microsoft, for a message; null for other domains, for
/// what it gets right and for what it refuses itself. Measured with OpenVINO 2026.4.1 against ONNX
/// Runtime 1.31.1, each operator with each of its flags. `facts` know the inputs.
const char* contrib_flaw(const ::onnx::NodeProto& node, const FactsTable& facts);

}  // namespace corelane::onnx
