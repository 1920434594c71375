/// Networks of releases of ONNX that are later than the engine.
#pragma once

#include "corelane/base/status.h"
#include "drivers/virtual/common/onnx_patch.h"

namespace corelane::drivers::virtual_npu::ort {

/// Writes the versions that the engine knows (ONNX 1.21: IR 13, opset 26) over those of ONNX 1.22
/// and 1.23 (IR 14, opsets 27 and 28), which add operators, attributes and element types: the
/// engine refuses what it does not know of them, by name. A network with a BitShift or a Mod
/// stays as it is, since opset 28 gives these more meaning; so does one of later versions.
/// kMalformed.
Status fit_versions(PatchedModel& model);

}  // namespace corelane::drivers::virtual_npu::ort
