/// The network of a program file, read back.
#pragma once

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Parses and checks the graph and constants segments of a program file: as after an import, each
/// tensor has the bytes that its shape needs, raw, in the graph or inside the constants. True where
/// nodes had to be put in order: the file was not made by an import. kMalformed, kOutOfMemory,
/// kUnsupportedModel.
Result<bool> read_stored(ByteSpan graph, ByteSpan constants, ::onnx::ModelProto& model);

}  // namespace corelane::onnx
