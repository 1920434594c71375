/// The heap of this process.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"

namespace corelane {

/// Bytes that a program takes from which on what it frees is worth trim_heap().
inline constexpr std::size_t kWorthATrim = std::size_t{4} << 20;

/// Gives the pages of the heap in which nothing is left back to the system, as malloc_trim(3) does:
/// what a compilation took and freed stays with the process else. It takes the heap's locks, some
/// 2 ms for a heap of 100 MB, so it is for what takes long anyway. Nothing where the heap is in
/// very many pieces, of which each could cost a call of the system. Any thread.
CORELANE_API void trim_heap() noexcept;

/// Waits until nobody holds `object`, so that its memory may go back: looks ten times a second, for
/// 10 s at most. False once `stop`, which `lock` guards, is true; `changed` tells of that.
CORELANE_API bool await_end_of(const std::weak_ptr<const void>& object, const bool& stop,
                               std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                               Clock& clock);

}  // namespace corelane
