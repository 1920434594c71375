/// The network of a program file, read back.
#pragma once

#include <google/protobuf/arena.h>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Parses and checks the graph and constants segments of a program file: as after an import, each
/// tensor has the bytes that its shape needs, raw, in the graph or inside the constants. True where
/// nodes had to be put in order: the file was not made by an import. kMalformed, kOutOfMemory,
/// kUnsupportedModel.
Result<bool> read_stored(ByteSpan graph, ByteSpan constants, ::onnx::ModelProto& model);

/// The same of a graph that an import has made or read_stored() has checked, in the order that it
/// has. Messages of an arena are made and freed at once; half of the time goes there else.
/// kMalformed.
Result<::onnx::ModelProto*> reread_stored(ByteSpan graph, google::protobuf::Arena& arena);

}  // namespace corelane::onnx
