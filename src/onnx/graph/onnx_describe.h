/// What a checked and frozen model says of itself.
#pragma once

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/onnx/onnx_import.h"
#include "corelane/program/description.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Inputs that are not initialisers, by position in the graph.
std::vector<int> real_inputs(const ::onnx::GraphProto& graph);

/// A batch multiplies dimension 0, and shape sets are of inputs: kInvalidArgument where one is
/// asked for of a network with an input or output that is not a tensor of numbers.
Status check_values(const ::onnx::GraphProto& graph, const ImportOptions& options);

/// Fills name, producer, opset, inputs, outputs (with boundary quantization), metadata, counts.
/// kUnsupportedModel for inputs or outputs that are not tensors of a known type; kInvalidArgument
/// for mean/std or io_dtype that do not fit.
Status describe(const ::onnx::ModelProto& model, ByteSpan constants, const ImportOptions& options,
                ProgramDescription& description);

}  // namespace corelane::onnx
