/// The shapes of a network's outputs for given shapes of its inputs, without a run.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/tensor/shape.h"

namespace corelane::onnx {

/// `graph` and `constants` are the segments of a program file; each of `sets` has a shape for every
/// input. For each set the outputs' shapes, in order; nothing for one that follows from values, or
/// from an operator that the inference does not know. kMalformed, kShapeMismatch. Any thread.
Result<std::vector<std::vector<std::optional<Shape>>>> infer_output_shapes(
    ByteSpan graph, ByteSpan constants, std::span<const std::vector<Shape>> sets);

/// The shapes of the network's outputs as they follow from its inputs and constants, whatever the
/// file says of outputs and inner values, which may be wrong. The segments as of estimate_run().
/// `inputs`: shapes by name, for dimensions that are declared open. Nothing for an output of which
/// a dimension does not follow. kMalformed, kShapeMismatch. Any thread.
Result<std::vector<std::optional<Shape>>> shapes_from_inputs(
    ByteSpan graph, ByteSpan constants, const std::map<std::string, Shape>& inputs);

}  // namespace corelane::onnx
