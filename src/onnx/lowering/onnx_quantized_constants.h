/// Outputs that are quantized constants.
///
/// OpenVINO 2026.4.1 gives the integers, not what they stand for, where it computes in several
/// streams and an output is QuantizeLinear and DequantizeLinear of a constant float, whatever comes
/// after them: 140 for 1.0. Which session does so changes from one to the next. Where an input of
/// the network takes part, and in one stream, the result is right.
#pragma once

#include <optional>

#include "corelane/program/description.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// The first output that depends on no input and is computed by QuantizeLinear, as a warning. A
/// Where counts as constant with a constant condition and one constant choice: engines take the
/// condition out.
std::optional<ImportFinding> quantized_constant(const ::onnx::GraphProto& graph);

}  // namespace corelane::onnx
