/// When the next task may be submitted, so that submissions are as far apart as the cores need.
/// A value without a clock: time comes in as an argument.
#pragma once

#include <cstddef>

#include "corelane/base/clock.h"

namespace corelane::dispatch {

class Pacer {
 public:
  /// `cores`: how many take tasks side by side; at least 1.
  explicit Pacer(std::size_t cores) noexcept : cores_(cores) {}

  /// The device time of a task that succeeded. The first one is the average; later ones are 5 % of
  /// it.
  void sample(Duration device_time) noexcept {
    const auto x = static_cast<double>(device_time.count());
    average_ = sampled_ ? 0.95 * average_ + 0.05 * x : x;
    sampled_ = true;
  }
  Duration average() const noexcept { return Duration(static_cast<Duration::rep>(average_)); }
  /// Zero before the first sample.
  Duration interval() const noexcept {
    return Duration(static_cast<Duration::rep>(average_ / static_cast<double>(cores_)));
  }
  /// `now` when a task may be submitted, else the time to ask again.
  TimePoint admit(TimePoint now) const noexcept {
    if (!sampled_ || !submitted_) return now;
    const TimePoint next = last_ + interval();
    return next > now ? next : now;
  }
  /// A task was submitted.
  void submitted(TimePoint now) noexcept {
    last_ = now;
    submitted_ = true;
  }

 private:
  std::size_t cores_;
  double average_ = 0;  ///< Nanoseconds.
  bool sampled_ = false;
  bool submitted_ = false;
  TimePoint last_{};
};

}  // namespace corelane::dispatch
