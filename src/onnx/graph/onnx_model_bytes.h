/// A model from bytes and back.
#pragma once

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Checked before (sizes, depth) and after (structure) protobuf reads them. kMalformed,
/// kOutOfMemory, kUnsupportedModel.
Status parse_model(ByteSpan bytes, ::onnx::ModelProto& model);

/// kUnsupportedModel from 2 GiB on, which protobuf cannot write.
Result<ByteVector> serialize_model(const ::onnx::ModelProto& model);

}  // namespace corelane::onnx
