/// A virtual clock for tests of threads that wait for a time, or meet at one.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "corelane/base/clock.h"

namespace corelane::device {

/// A VirtualClock that knows how many threads wait on it with a time limit.
class WatchedClock final : public Clock {
 public:
  TimePoint now() const noexcept override {
    if (armed_.exchange(false)) std::exchange(at_look_, nullptr)();
    return clock_.now();
  }
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  TimePoint until) override {
    if (until == kNever) return clock_.wait_until(lock, cv, until);
    // With the caller's lock held: who changes what it waits for finds it waiting.
    ++waiting_;
    const bool in_time = clock_.wait_until(lock, cv, until);
    --waiting_;
    return in_time;
  }
  TimerId call_at(TimePoint when, std::function<void()> f) override {
    return clock_.call_at(when, std::move(f));
  }
  bool cancel(TimerId id) override { return clock_.cancel(id); }
  bool is_virtual() const noexcept override { return true; }

  /// Waits until `n` threads do.
  void await(int n) const {
    while (waiting_ != n) std::this_thread::yield();
  }
  /// Calls `f`, once, in the thread that looks at the time next.
  void at_next_look(std::function<void()> f) {
    at_look_ = std::move(f);
    armed_ = true;
  }
  void advance_to(TimePoint t) { clock_.advance_to(t); }
  void advance(Duration d) { clock_.advance(d); }
  std::size_t run_all() { return clock_.run_all(); }

 private:
  VirtualClock clock_;
  std::atomic<int> waiting_{0};
  mutable std::atomic<bool> armed_{false};
  mutable std::function<void()> at_look_;
};

}  // namespace corelane::device
