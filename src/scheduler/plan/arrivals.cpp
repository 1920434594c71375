#include "scheduler/plan/arrivals.h"

#include <algorithm>

namespace corelane::scheduler {

void Arrivals::came(TimePoint now) noexcept {
  ++count_;
  if (count_ > 1) {
    const Duration gap = std::max(now - last_, Duration{0});
    // A quarter each: 94 % of a change of rate after ten arrivals.
    average_ += count_ == 2 ? gap : (gap - average_) / 4;
  }
  last_ = now;
}

Duration Arrivals::gap(TimePoint now) const noexcept {
  if (count_ < 2) return Duration::max();
  return std::max(average_, now - last_);
}

bool pays_to_wait(const WaitView& view) noexcept {
  if (view.waiting == 0 || view.gap == Duration::max()) return false;
  const auto n = static_cast<double>(view.waiting);
  const auto gap = static_cast<double>(view.gap.count());
  const auto now_alone = static_cast<double>(view.now_alone.count());
  const auto with_next = static_cast<double>(view.with_next.count());
  const auto next_alone = static_cast<double>(view.next_alone.count());
  const double waiting = n * (gap + with_next) + with_next;
  const double at_once = n * now_alone + std::max(now_alone - gap, 0.0) + next_alone;
  return waiting < at_once;
}

}  // namespace corelane::scheduler
