#include "corelane/base/clock.h"

#include <pthread.h>

#include <csignal>
#include <exception>
#include <system_error>
#include <thread>

#include "base/timer_queue.h"
#include "corelane/base/log.h"

namespace corelane {

void run_timer_call(TimerQueue::Call& call) noexcept {
  try {
    call();
  } catch (const std::exception& e) {
    log::error("clock", "a timer's call threw: {}", e.what());
  } catch (...) {
    log::error("clock", "a timer's call threw something that is no std::exception");
  }
}

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
    std::lock_guard guard(mutex_);
    const TimerId id = timers_.add(when, std::move(f));
    start_thread();
    // A thread that sleeps until an earlier time looks again then: jobs that set and cancel a
    // deadline each do not wake it.
    if (when < sleeps_until_) changed_.notify_one();
    return id;
  }

  bool cancel(TimerId id) override {
    TimerQueue::Call removed;  // Destroyed after the lock: its captures may call the clock.
    std::lock_guard guard(mutex_);
    return timers_.remove(id, removed);
  }

 private:
  /// Signals of the program stay with the program's threads, so all are blocked for the timer
  /// thread. When no thread can be made the timers stay queued and the next call_at tries again.
  void start_thread() {
    if (started_) return;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([this] { run(); }).detach();
      started_ = true;
    } catch (const std::system_error& e) {
      log::error("clock", "cannot start the timer thread: {}; timers wait for a later call",
                 e.what());
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void run() noexcept {
    pthread_setname_np(pthread_self(), "corelane-timer");
    std::unique_lock lock(mutex_);
    for (;;) {
      const TimePoint next = timers_.next();
      sleeps_until_ = next;
      if (next == kNever) {
        changed_.wait(lock);
      } else if (now() < next) {
        changed_.wait_until(lock, next);
      } else {
        TimerQueue::Call call = timers_.pop();
        lock.unlock();
        run_timer_call(call);
        call = nullptr;
        lock.lock();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  TimerQueue timers_;
  TimePoint sleeps_until_ = kNever;  ///< Of the timer thread; a past time while it runs calls.
  bool started_ = false;
};

}  // namespace

const std::shared_ptr<Clock>& real_clock() {
  // Never destroyed: its thread may run while the process's static destructors do.
  static auto* const clock = [] {
    static auto* const made = new std::shared_ptr<Clock>(std::make_shared<RealClock>());
    // A forked child has no timer thread, and perhaps a locked mutex: it gets a clock of its own.
    pthread_atfork(nullptr, nullptr, [] {
      static_cast<void>(new std::shared_ptr<Clock>(*made));
      *made = std::make_shared<RealClock>();
    });
    return made;
  }();
  return *clock;
}

}  // namespace corelane
