#include "dispatch/interrupt_poll.h"

#include <algorithm>

#include "dispatch/callback_thread.h"

namespace corelane::session {
namespace {

constexpr std::chrono::milliseconds kPeriod{20};

}  // namespace

Status interrupted_status() { return error(Code::kCancelled, "the call was interrupted"); }

Status InterruptPoll::wait(Clock& clock, std::unique_lock<std::mutex>& lock,
                           std::condition_variable& cv, TimePoint until) {
  if (!ask_) {
    clock.wait_until(lock, cv, until);
    return {};
  }
  const TimePoint now = real_clock()->now();
  if (next_ == kNever) next_ = now + kPeriod;
  if (now >= next_) {
    // What is waited for had not come when this was called: only then it is asked.
    next_ = now + kPeriod;
    lock.unlock();
    bool stop = true;  // Also where asking fails.
    call_guarded([&] { stop = ask_(); });
    lock.lock();
    return stop ? interrupted_status() : Status{};
  }
  const TimePoint here = clock.now();  // Of another clock, if the session's is virtual.
  const Duration left = until > here ? until - here : Duration{0};
  cv.wait_until(lock, now + std::min<Duration>(left, next_ - now));
  return {};
}

}  // namespace corelane::session
