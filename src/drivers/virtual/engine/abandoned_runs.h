/// Runs of one compiled copy that were abandoned, and may never come back.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>

#include "base/sync.h"
#include "corelane/base/clock.h"

namespace corelane::drivers::virtual_npu {

/// The engine looks between two nodes whether a run was abandoned; one with open shapes goes on to
/// its end (VirtualProgram::may_end_early()). What takes longer is taken to hang, as a custom
/// operator may.
inline constexpr Duration kHung = std::chrono::milliseconds(500);

/// Any thread.
class AbandonedRuns {
 public:
  /// A run is abandoned. It may have returned already.
  void begin() {
    const MutexLock lock(mutex_);
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  /// A run that was abandoned has returned.
  void end() {
    const MutexLock lock(mutex_);
    count_.fetch_sub(1, std::memory_order_release);
    returned_.notify_all();
  }
  /// Waits until all have returned; false where `limit` of the machine's time has passed before.
  bool wait(Duration limit) { return none() || wait_for_them(limit); }

 private:
  bool none() const noexcept { return count_.load(std::memory_order_acquire) <= 0; }
  bool wait_for_them(Duration limit) {
    MutexLock lock(mutex_);
    const auto until = std::chrono::steady_clock::now() + limit;
    while (!none())
      if (returned_.wait_until(lock.native(), until) == std::cv_status::timeout) break;
    return none();
  }

  Mutex mutex_{LockRank::kLeaf};
  std::condition_variable returned_;
  std::atomic<int> count_{0};  ///< Changed under the mutex; read before each run without it.
};

}  // namespace corelane::drivers::virtual_npu
