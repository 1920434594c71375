/// Shapes of outputs: what the engine infers, not what a model declares.
#pragma once

#include "corelane/base/status.h"
#include "drivers/virtual/common/onnx_patch.h"

namespace corelane::drivers::virtual_npu::ort {

/// Takes the shapes out of the declarations of the graph's outputs, of a network with open inputs.
/// The engine would report them as fixed where they are wrong, as exporters leave a batch of 1 at
/// an output alone, and end a run whose result does not fit into memory of that size. Where all
/// inputs are fixed they are kept, since not every size is inferred. PatchedModel::outputs stay.
/// kMalformed where the bytes are no ONNX model.
Status drop_output_shapes(PatchedModel& model);

/// The shape that the engine knows of an output that is declared as `declared`: open dimensions
/// where it knows no rank.
Shape known_shape(Shape inferred, const GraphValue& declared);

}  // namespace corelane::drivers::virtual_npu::ort
