#include "base/sync.h"

#include <thread>

#include "base/thread.h"

namespace corelane::detail {
namespace {

/// Looks at a taken mutex: less than the system takes to put a thread to sleep and to wake it. With
/// one CPU a spinning thread keeps the one from running that it waits for.
const int kLooks = std::thread::hardware_concurrency() > 1 ? 20 : 0;

}  // namespace

void lock_taken(std::unique_lock<std::mutex>& lock) {
  for (int i = kLooks; i > 0; --i) {
    pause_cpu();
    if (lock.try_lock()) return;
  }
  lock.lock();
}

}  // namespace corelane::detail

#if defined(CORELANE_CHECK_LOCKS)

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace corelane::detail {
namespace {

/// The ranks that this thread holds, in the order in which it took them. Plain data: handlers of
/// exit() take mutexes after the thread's objects are destroyed. Held ranks fall, and there are
/// fewer than this.
thread_local std::array<LockRank, 64> held;
thread_local std::size_t held_count = 0;

}  // namespace

void note_lock(LockRank rank) noexcept {
  if (rank == LockRank::kUnranked) return;
  for (std::size_t i = 0; i < held_count; ++i) {
    if (held[i] <= rank) {
      // A broken order is a defect; only debug builds check for it, and they stop here.
      std::fprintf(stderr, "corelane: a mutex of rank %u is taken while one of rank %u is held\n",
                   static_cast<unsigned>(rank), static_cast<unsigned>(held[i]));
      std::abort();
    }
  }
  held[held_count++] = rank;
}

void note_unlock(LockRank rank) noexcept {
  const auto end = held.begin() + static_cast<std::ptrdiff_t>(held_count);
  const auto place = std::find(held.begin(), end, rank);
  if (place == end) return;
  std::move(place + 1, end, place);
  --held_count;
}

}  // namespace corelane::detail

#endif
