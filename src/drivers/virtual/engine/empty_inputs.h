/// Inputs without elements in a run. OpenVINO 2026.4.1 does not execute a node one of whose inputs
/// has none: where a result of it should have elements, they are what was in its memory.
#pragma once

#include <string>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/tensor/shape.h"
#include "drivers/virtual/common/onnx_patch.h"

namespace corelane::drivers::virtual_npu {

/// For each input of a network, whether the engine computes runs in which it has no elements: where
/// it is joined to something (Concat, as what a decoder keeps of earlier steps is), asked for its
/// shape, or an output, as it is or cast. kMalformed where the bytes are no ONNX model.
Result<std::vector<bool>> inputs_that_may_be_empty(const PatchedModel& model);

/// kOutOfRange naming the input, for one that may not be empty and is.
Status refuse_empty(const std::string& input, const Shape& shape);

}  // namespace corelane::drivers::virtual_npu
