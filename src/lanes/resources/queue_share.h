/// What a queue has had of its device's time, against its weight and its cap.
#pragma once

#include <algorithm>
#include <cstddef>

#include "corelane/base/clock.h"

namespace corelane::lanes {

/// A value that knows no jobs and no lock. Core time is time multiplied by the cores it was had on.
class QueueShare {
 public:
  QueueShare() = default;
  /// As in device::QueueOptions, on a device of `cores` cores.
  QueueShare(double weight, double cap, Duration window, std::size_t cores)
      : weight_(weight), cap_(cap * static_cast<double>(cores)), window_(window) {}

  double weight() const noexcept { return weight_; }
  Duration served() const noexcept { return served_; }
  /// Core time for the weight, in nanoseconds.
  double level() const noexcept {
    const auto served = static_cast<double>(served_.count());
    return weight_ == 1 ? served : served / weight_;  // Each run asks, and a division takes long.
  }
  bool capped() const noexcept { return cap_ != 0; }
  /// When a job may start; always for a queue without a cap.
  TimePoint allowed_at() const noexcept { return allowed_at_; }

  /// It has a job again, while the queues that were served last stand at `level`: what it could
  /// have had meanwhile counts as had.
  void join(double level) noexcept {
    served_ = std::max(served_, Duration(static_cast<Duration::rep>(level * weight_)));
  }
  /// A job starts that is expected to take this core time.
  void charge(Duration core_time, TimePoint now) noexcept {
    served_ += core_time;
    if (!capped()) return;
    allowed_at_ = std::max(allowed_at_, now - window_) + paid_for(core_time);
  }
  /// It took `more` than expected, or less.
  void correct(Duration more) noexcept {
    served_ += more;
    if (capped()) allowed_at_ += paid_for(more);
  }

 private:
  /// The time after which the cap has paid for this core time.
  Duration paid_for(Duration core_time) const noexcept {
    return Duration(static_cast<Duration::rep>(static_cast<double>(core_time.count()) / cap_));
  }

  double weight_ = 1;
  double cap_ = 0;  ///< In cores; 0: none.
  Duration window_{};
  Duration served_{};
  TimePoint allowed_at_{};
};

}  // namespace corelane::lanes
