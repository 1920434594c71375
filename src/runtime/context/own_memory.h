/// Memory of a context for tensors whose size the device does not fix: 64-byte aligned, zeroed.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "corelane/base/status.h"

namespace corelane::runtime {

/// At least one byte. `counter` is raised by the size while the block lives, which may be longer
/// than the context: a job that was abandoned keeps its memory. kOutOfMemory.
Result<std::shared_ptr<void>> allocate_own(std::size_t size,
                                           std::shared_ptr<std::atomic<std::size_t>> counter);

}  // namespace corelane::runtime
