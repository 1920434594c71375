/// Quotients of integers by -1, in a form in which the engine does not end the process.
///
/// ONNX Runtime 1.31.1 refuses an integer division by 0, and divides the smallest integer by -1 as
/// the processor does on which it traps: SIGFPE, while it loads constants or runs.
#pragma once

#include "corelane/base/status.h"
#include "drivers/virtual/common/onnx_patch.h"

namespace corelane::drivers::virtual_npu::ort {

/// Writes each Div and Mod of int32 and int64 whose divisor may be -1 in other nodes, in graphs
/// within nodes too: no divisor is -1 there, and the results are the same; the smallest integer by
/// -1 is itself, with a rest of 0, as in numpy. A divisor that is a small constant without -1, and
/// a node whose type does not follow from what is around it, stay as they are. kMalformed where
/// the bytes are no ONNX model.
Status guard_quotients(PatchedModel& model);

}  // namespace corelane::drivers::virtual_npu::ort
