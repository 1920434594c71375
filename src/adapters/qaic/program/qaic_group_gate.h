/// Whether the programs of a group may begin inferences, and how many are on their way.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/sync.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"

namespace corelane::qaic {

/// Shared by a group and its programs. All functions from any thread.
class GroupGate {
 public:
  explicit GroupGate(std::string group) : group_(std::move(group)) {}

  /// An inference of `program` begins. kWrongState while the gate is closed.
  Status enter(std::string_view program) {
    const MutexLock lock(mutex_);
    if (!open_) return closed_to(program);
    ++inside_;
    return {};
  }
  /// It has ended, or did not begin.
  void leave() {
    const MutexLock lock(mutex_);
    if (--inside_ == 0) left_.notify_all();
  }
  void open() {
    const MutexLock lock(mutex_);
    open_ = true;
  }
  void close() {
    const MutexLock lock(mutex_);
    open_ = false;
  }
  /// For good: threads that wait for the gate do so no more.
  void end() {
    const MutexLock lock(mutex_);
    ended_ = true;
    left_.notify_all();
  }
  bool ended() const {
    const MutexLock lock(mutex_);
    return ended_;
  }
  /// Waits until no inference is on its way; false when `until`, or the end, came first.
  bool wait_empty(Clock& clock, TimePoint until) {
    MutexLock lock(mutex_);
    for (bool in_time = true; inside_ != 0;) {
      if (!in_time || ended_) return false;
      in_time = clock.wait_until(lock.native(), left_, until);
    }
    return true;
  }
  /// Why `program` is not active.
  Status closed_to(std::string_view program) const {
    return error(Code::kWrongState,
                 "program '{}' is of the group '{}', which is not enabled; enable the group",
                 program, group_);
  }
  const std::string& group() const noexcept { return group_; }

 private:
  const std::string group_;
  mutable Mutex mutex_{LockRank::kDoorWait};
  std::condition_variable left_;
  bool open_ CORELANE_GUARDED_BY(mutex_) = false;
  bool ended_ CORELANE_GUARDED_BY(mutex_) = false;
  std::size_t inside_ CORELANE_GUARDED_BY(mutex_) = 0;
};

}  // namespace corelane::qaic
