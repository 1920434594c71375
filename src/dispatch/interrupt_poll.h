/// Waits that the waiting thread's own caller can interrupt: a function is asked every 20 ms of
/// the machine's clock.
#pragma once

#include <condition_variable>
#include <functional>

#include "base/sync.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"

namespace corelane::dispatch {

/// kCancelled: the caller interrupted its wait.
Status interrupted_status();

/// One wait, in as many steps as it takes. A null function never interrupts. Used by one thread.
class InterruptPoll {
 public:
  /// `log_part`: a literal, for the line that is logged when `ask` throws, which interrupts too.
  InterruptPoll(const std::function<bool()>& ask, const char* log_part) noexcept
      : ask_(ask), log_part_(log_part) {}
  /// As Clock::wait_until, but not past the next time to ask. At that time it asks instead, without
  /// the lock, so callers test their condition again after each call. kCancelled when the function
  /// answers true.
  Status wait(Clock& clock, MutexLock& lock, std::condition_variable& cv, TimePoint until);

 private:
  const std::function<bool()>& ask_;
  const char* const log_part_;
  TimePoint next_ = kNever;
};

}  // namespace corelane::dispatch
