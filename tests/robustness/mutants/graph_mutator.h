/// Deterministic harm to networks, field by field: models that still read as ONNX and are wrong.
#pragma once

#include "mutator.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::robustness {

/// Does a few things to `model` that no exporter would; nodes and values of `donor` may get into
/// it.
void mutate_model(::onnx::ModelProto& model, const ::onnx::ModelProto& donor, Mutator& mutator);

}  // namespace corelane::robustness
