/// A model from bytes and back.
#pragma once

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Checks sizes and nesting of the bytes, then parses them; what the graph says may be anything.
/// kMalformed, kOutOfMemory.
Status read_model(ByteSpan bytes, ::onnx::ModelProto& model);

/// The same of bytes that check_wire() has looked at.
Status read_checked(ByteSpan bytes, ::onnx::ModelProto& model);

/// read_model(), and a check of the graph's structure; nodes that read what later ones make are put
/// in order before, and of initialisers of one name the last one stays. kMalformed, with the node,
/// input or output where the bytes are a model and its graph is none; kOutOfMemory,
/// kUnsupportedModel.
Status parse_model(ByteSpan bytes, ::onnx::ModelProto& model);

/// The same. True where the graph had to be mended so, and the bytes cannot be handed on as they
/// are to a reader that wants it in order.
Result<bool> parse_sorted(ByteSpan bytes, ::onnx::ModelProto& model);

/// What parse_sorted() does with a model that has been read.
Result<bool> put_in_order(::onnx::ModelProto& model);

/// kUnsupportedModel from 2 GiB on, which protobuf cannot write.
Result<ByteVector> serialize_model(const ::onnx::ModelProto& model);

}  // namespace corelane::onnx
