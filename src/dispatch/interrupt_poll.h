/// Waits that can be interrupted: whoever waits asks every 20 ms of the machine's clock.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "corelane/base/clock.h"
#include "corelane/base/status.h"

namespace corelane::session {

Status interrupted_status();

/// One wait, in as many steps as it takes. A null function never interrupts.
class InterruptPoll {
 public:
  explicit InterruptPoll(const std::function<bool()>& ask) noexcept : ask_(ask) {}
  /// As Clock::wait_until, but not past the next time to ask. When that has come it asks instead,
  /// without the lock, so callers look again for what they wait for.
  /// kCancelled when the answer is yes.
  Status wait(Clock& clock, std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
              TimePoint until);

 private:
  const std::function<bool()>& ask_;
  TimePoint next_ = kNever;
};

}  // namespace corelane::session
