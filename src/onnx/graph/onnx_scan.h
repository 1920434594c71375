/// A look at the bytes of an ONNX model before they are parsed: is it one, and what would it take?
#pragma once

#include <cstddef>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"

namespace corelane::onnx {

/// Walks the protobuf wire format without allocating. kMalformed when the framing is broken or
/// nested too deeply, kOutOfMemory when the parsed form would take more than twice the input plus
/// a constant (many tiny messages, or integers of one byte each, grow when parsed),
/// kUnsupportedModel from 2 GiB on, which protobuf cannot read.
Status check_wire(ByteSpan model);

}  // namespace corelane::onnx
