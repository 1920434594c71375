#include "corelane/base/clock.h"

#include <sys/prctl.h>

#include "base/fork.h"
#include "base/guard.h"
#include "base/sync.h"
#include "base/thread.h"
#include "base/timer_queue.h"
#include "corelane/base/log.h"

namespace corelane {

namespace {

class RealClock final : public Clock {
 public:
  TimePoint now() const noexcept override {
    return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
  }

  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  TimePoint until) override {
    if (until == kNever) {
      cv.wait(lock);
      return true;
    }
    cv.wait_until(lock, until);
    return now() < until;
  }

  TimerId call_at(TimePoint when, std::function<void()> f) override {
    const MutexLock lock(mutex_);
    const TimerId id = timers_.add(when, std::move(f));
    start_locked();
    // A thread that sleeps until an earlier time looks again then: jobs that set and cancel a
    // deadline each do not wake it.
    if (when < sleeps_until_) changed_.notify_one();
    return id;
  }

  bool cancel(TimerId id) override {
    TimerQueue::Call removed;  // Destroyed after the lock: its captures may call the clock.
    const MutexLock lock(mutex_);
    return timers_.remove(id, removed);
  }

 private:
  /// When no thread can be made the timers stay queued and the next call_at tries again.
  void start_locked() CORELANE_REQUIRES(mutex_) {
    if (started_) return;
    auto thread = start_thread("corelane-timer", [this] { run(); });
    started_ = thread.has_value();
    if (started_)
      thread->detach();
    else
      log::error("clock", "{}; timers wait for a later call", thread.error().message());
  }

  void run() {
    // The kernel may wake a thread 50 us late by default: a twentieth of a job of 1 ms.
    constexpr unsigned long kSlackNs = 1000;
    prctl(PR_SET_TIMERSLACK, kSlackNs);
    MutexLock lock(mutex_);
    for (;;) {
      const TimePoint next = timers_.next();
      sleeps_until_ = next;
      if (next == kNever) {
        changed_.wait(lock.native());
      } else if (now() < next) {
        changed_.wait_until(lock.native(), next);
      } else {
        TimerQueue::Call call = timers_.pop();
        lock.unlock();
        run_callback("clock", "a timer's call", call);
        call = nullptr;
        lock.lock();
      }
    }
  }

  Mutex mutex_{LockRank::kClock};
  std::condition_variable changed_;
  TimerQueue timers_ CORELANE_GUARDED_BY(mutex_);
  /// Until when the timer thread sleeps; a past time while it runs calls.
  TimePoint sleeps_until_ CORELANE_GUARDED_BY(mutex_) = kNever;
  bool started_ CORELANE_GUARDED_BY(mutex_) = false;
};

/// A forked child has no timer thread, and its parent's clock may be locked: it gets its own.
struct ProcessClock {
  std::shared_ptr<Clock> clock = std::make_shared<RealClock>();
};

}  // namespace

const std::shared_ptr<Clock>& real_clock() { return per_process<ProcessClock>().clock; }

}  // namespace corelane
