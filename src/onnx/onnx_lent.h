/// A model that is read without its large weights, which stay where they lie in its bytes.
#pragma once

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "onnx/graph/onnx_external.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// As parse_model(), but protobuf does not copy the raw data, nor the packed floats, of large
/// initializers of the main graph, nor of tensors in attributes of its nodes, as Constant has one:
/// those tensors refer to `bytes` through `external`, which keeps the span. Tensors that are not
/// well formed are read as they are, and fail where others do. kMalformed also for a tensor that
/// names the place of lent bytes itself.
Status parse_lending(ByteSpan bytes, ::onnx::ModelProto& model, ExternalData& external);

}  // namespace corelane::onnx
