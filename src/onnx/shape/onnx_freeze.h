/// Fixing open dimensions of inputs: by input, by symbol, as a closed list of sets, by batch.
#pragma once

#include "corelane/base/status.h"
#include "corelane/onnx/onnx_import.h"
#include "corelane/program/description.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Writes input_shapes and dims into the graph's inputs; a symbol that gets a value is replaced
/// everywhere (outputs and inner values too). kInvalidArgument for a name that is not an input or
/// symbol (the message lists them), kShapeMismatch for a shape that the declared one refuses.
/// Then open_batch, where it applies.
Status freeze_dims(::onnx::GraphProto& graph, const ImportOptions& options);

/// Checks and deduplicates options.shape_sets against the inputs. kShapeMismatch names the set and
/// the input.
Result<std::vector<std::vector<Shape>>> check_shape_sets(const std::vector<IoEntry>& inputs,
                                                         const ImportOptions& options);

}  // namespace corelane::onnx
