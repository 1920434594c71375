/// Element types that end the process in OpenVINO.
#pragma once

#include "onnx/graph/onnx_proto.h"
#include "onnx/infer/onnx_facts.h"

namespace corelane::onnx {

/// Why OpenVINO must not see a node of the standard, for a message; null where it may. Tried with
/// OpenVINO 2026.4.1: each operator of the node tests with each element type in place of its own.
const char* type_flaw(const ::onnx::NodeProto& node, const FactsTable& facts);

}  // namespace corelane::onnx
