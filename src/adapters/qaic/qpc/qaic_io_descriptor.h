/// The descriptor of a program's inputs and outputs: the bytes of an aicapi.IoDesc.
#pragma once

#include <cstdint>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"

namespace corelane::qaic {

struct QpcProgram;

/// The sets "default", which is the selected one, and "dma". Any thread.
Result<std::vector<std::uint8_t>> write_io_descriptor(const QpcProgram& program);

/// A descriptor that a client gives for `program`: kInvalidArgument where the bytes are none, or
/// the selected set is neither the program's "default" nor its "dma" one. Any thread.
Status check_io_descriptor(ByteSpan bytes, const QpcProgram& program);

}  // namespace corelane::qaic
