/// Memory of a context for tensors whose size the device does not fix: 64-byte aligned, zeroed.
///
/// It is the one tensor memory of this room that does not come from the device: a buffer with a
/// descriptor takes some 20 us and a page fault for each page that is filled, where the heap takes
/// 0.1 us and none, and a process has a thousand descriptors. A device that cannot reach the heap
/// has to shield this memory like memory of the user.
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
