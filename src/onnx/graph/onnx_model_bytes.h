/// A model from bytes and back.
#pragma once

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Checks sizes and nesting of the bytes, then parses them; what the graph says may be anything.
/// kMalformed, kOutOfMemory.
Status read_model(ByteSpan bytes, ::onnx::ModelProto& model);

/// read_model(), and a check of the graph's structure; nodes that read what later ones make are put
/// in order before. kMalformed, kOutOfMemory, kUnsupportedModel.
Status parse_model(ByteSpan bytes, ::onnx::ModelProto& model);

/// The same. True where nodes had to be put in order, so that the bytes cannot be handed on as they
/// are to a reader that wants them so.
Result<bool> parse_sorted(ByteSpan bytes, ::onnx::ModelProto& model);

/// kUnsupportedModel from 2 GiB on, which protobuf cannot write.
Result<ByteVector> serialize_model(const ::onnx::ModelProto& model);

}  // namespace corelane::onnx
