#include "dispatch/interrupt_poll.h"

#include <algorithm>

#include "base/guard.h"

namespace corelane::dispatch {
namespace {

constexpr std::chrono::milliseconds kPeriod{20};

}  // namespace

Status interrupted_status() { return error(Code::kCancelled, "the call was interrupted"); }

// The analysis does not follow a lock that a caller passes in: it is held on entry and on return.
Status InterruptPoll::wait(Clock& clock, MutexLock& lock, std::condition_variable& cv,
                           TimePoint until) CORELANE_NO_THREAD_SAFETY_ANALYSIS {
  if (!ask_) {
    clock.wait_until(lock.native(), cv, until);
    return {};
  }
  const TimePoint now = real_clock()->now();
  if (next_ == kNever) next_ = now + kPeriod;
  if (now >= next_) {
    // The condition was not met when this was called: poll only then.
    next_ = now + kPeriod;
    lock.unlock();
    bool stop = true;  // Also when the function throws.
    run_callback(log_part_, "an interrupted() function", [&] { stop = ask_(); });
    lock.lock();
    return stop ? interrupted_status() : Status{};
  }
  const TimePoint here = clock.now();  // Of another clock, if the given one is virtual.
  const Duration left = until > here ? until - here : Duration{0};
  cv.wait_until(lock.native(), now + std::min<Duration>(left, next_ - now));
  return {};
}

}  // namespace corelane::dispatch
