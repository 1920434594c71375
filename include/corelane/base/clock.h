/// Time as a parameter. Every policy takes `now` as an argument; everything that waits does so on
/// a Clock that was injected, so tests run on a VirtualClock and never sleep.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "corelane/base/api.h"

namespace corelane {

using Duration = std::chrono::nanoseconds;
/// Nanoseconds since an arbitrary start; CLOCK_MONOTONIC for the real clock.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// "Never": a deadline that does not come.
inline constexpr TimePoint kNever = TimePoint::max();

/// Reads time, waits, and calls back at a time. All methods from any thread.
class CORELANE_API Clock {
 public:
  using TimerId = std::uint64_t;

  virtual ~Clock() = default;
  /// The time now. Never goes back.
  virtual TimePoint now() const noexcept = 0;
  /// Waits on `cv` until it is notified (or wakes spuriously) or `until` has come; false when the
  /// time has come. `lock` is held on entry and on return. kNever waits for the notification alone.
  virtual bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                          TimePoint until) = 0;
  /// Calls `f` once at `when` on the clock's own thread (real) or in advance_to() (virtual).
  /// `f` must not block and must not throw. No lock of the clock is held while it runs.
  virtual TimerId call_at(TimePoint when, std::function<void()> f) = 0;
  /// True when the call was removed; false when it ran, is running, or is unknown. Does not wait.
  virtual bool cancel(TimerId id) = 0;
  /// True when time only moves by VirtualClock::advance_to.
  virtual bool is_virtual() const noexcept { return false; }
};

/// The machine's monotonic clock; lives until the process ends. Its timer thread starts with the
/// first call_at.
CORELANE_API const std::shared_ptr<Clock>& real_clock();

/// A clock that stands still until a test moves it. Timers run in order of time, then of creation,
/// in the thread that advances, with now() equal to their time.
class CORELANE_API VirtualClock final : public Clock {
 public:
  /// A clock that stands at zero.
  VirtualClock();
  ~VirtualClock() override;
  TimePoint now() const noexcept override;
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  TimePoint until) override;
  TimerId call_at(TimePoint when, std::function<void()> f) override;
  bool cancel(TimerId id) override;
  bool is_virtual() const noexcept override { return true; }

  /// Moves to `t`, running each timer that falls due, also those that timers create.
  void advance_to(TimePoint t);
  /// advance_to() a time `d` from now.
  void advance(Duration d) { advance_to(now() + d); }
  /// Runs timers until none is left or `limit` timers ran; the number that ran.
  std::size_t run_all(std::size_t limit = 1'000'000);
  /// When the next timer falls due; kNever when there is none.
  TimePoint next_timer() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace corelane
