/// Values of a run that an engine uses as places in memory without looking at them.
///
/// Measured with OpenVINO 2026.4.1, each operator of the standard with values that nobody expects
/// (tests/onnx/values_runner.cpp): scatters and TensorScatter write outside of the tensor,
/// GatherND and GatherElements return what lies beside it, Col2Im divides by a block of 0, Range by
/// a step of 0. ONNX Runtime looks at each of these values and refuses the run.
#pragma once

#include <optional>

#include "corelane/program/description.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// The first node where the values of a run could make the engine read or write outside of a
/// tensor, as a warning; nothing where there is none. Values are followed from the network's
/// inputs: those that come from shapes, constants, or an operator whose results are places by
/// themselves (TopK, ArgMax, NonZero) are trusted.
std::optional<ImportFinding> unchecked_values(const ::onnx::GraphProto& graph);

}  // namespace corelane::onnx
