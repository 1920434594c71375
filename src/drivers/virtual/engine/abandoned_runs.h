/// Runs of one compiled copy that were abandoned, and may never come back.
#pragma once

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
    ++count_;
  }
  /// A run that was abandoned has returned.
  void end() {
    const MutexLock lock(mutex_);
    --count_;
    returned_.notify_all();
  }
  /// Waits until all have returned; false where `limit` of the machine's time has passed before.
  bool wait(Duration limit) {
    MutexLock lock(mutex_);
    const auto until = std::chrono::steady_clock::now() + limit;
    while (count_ > 0)
      if (returned_.wait_until(lock.native(), until) == std::cv_status::timeout) break;
    return count_ <= 0;
  }

 private:
  Mutex mutex_{LockRank::kLeaf};
  std::condition_variable returned_;
  int count_ CORELANE_GUARDED_BY(mutex_) = 0;
};

}  // namespace corelane::drivers::virtual_npu
