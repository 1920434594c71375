/// Shapes of outputs: what the engine infers, not what a model declares.
#pragma once

#include "corelane/base/status.h"
#include "drivers/virtual/common/onnx_patch.h"

namespace corelane::drivers::virtual_npu::ort {

/// Takes the shapes out of the declarations of the graph's outputs. The engine would report them as
/// fixed where they are wrong, as exporters leave a batch of 1, or the sizes of one traced run, at
/// an output, and end a run whose result does not fit into memory of that size. They are kept
/// where all inputs are fixed and custom nodes are there, whose results it knows nothing of.
/// PatchedModel::outputs stay. kMalformed where the bytes are no ONNX model.
Status drop_output_shapes(PatchedModel& model);

/// Whether no input of the network has an open dimension.
bool has_fixed_inputs(const PatchedModel& model);

}  // namespace corelane::drivers::virtual_npu::ort
