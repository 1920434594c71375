/// The last steps of an import, which the parts of a network that was cut go through as well.
#pragma once

#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/onnx/onnx_import.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Lowers `model` for each engine, describes it and writes it down: fills graph, lowered forms and
/// description of `imported`, but for shape sets and states. `constants` are what its external
/// tensors point into; `earlier` are findings of the steps before. Fails as import_onnx().
Status complete_model(::onnx::ModelProto& model, ByteSpan constants, const ImportOptions& options,
                      const std::vector<ImportFinding>& earlier, ImportedModel& imported);

}  // namespace corelane::onnx
