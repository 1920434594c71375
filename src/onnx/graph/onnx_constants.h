/// Large tensors move out of the graph into the constants, and back.
#pragma once

#include "corelane/base/bytes.h"
#include "corelane/base/large_bytes.h"
#include "corelane/base/status.h"
#include "onnx/graph/onnx_external.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Checks every tensor, makes its data raw, and moves those of kExternalFrom bytes and more to the
/// constants (location "corelane:constants", aligned 64). Small external tensors are taken into the
/// graph; those that share their bytes of a file share the constants. kUnsupportedModel when
/// overlaps make more of the files than they hold. Each tensor's memory is freed as soon as it is
/// copied.
Result<LargeBytes> take_constants(::onnx::ModelProto& model, ExternalData& external);

/// Adds room for `size` bytes at a multiple of kConstantAlignment, and zeros before it. Returns the
/// offset; the bytes there have no values yet.
std::size_t make_room(std::size_t size, LargeBytes& constants);

/// Makes the tensor an external one without data of its own.
void refer_to(::onnx::TensorProto& tensor, const char* location, std::size_t offset,
              std::size_t size);

/// Writes the data of one external tensor back into the message.
Status inline_tensor(::onnx::TensorProto& tensor, ByteSpan constants);

}  // namespace corelane::onnx
