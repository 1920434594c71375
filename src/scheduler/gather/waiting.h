/// A request in the line of a node, or in a batch.
#pragma once

#include <cstdint>
#include <memory>

#include "base/reserve.h"
#include "corelane/base/clock.h"
#include "corelane/scheduler/request.h"

namespace corelane::scheduler {

/// Its place in the line: the earlier, the sooner. A level of priority is worth some time, so that
/// a low one waits a bounded time longer than in the order of submission.
struct LinePlace {
  TimePoint order{};
  std::uint64_t number = 0;
  friend auto operator<=>(const LinePlace&, const LinePlace&) = default;
};

/// What decisions see of a request. Fixed from its entry on, but for what the table writes.
struct Waiting {
  std::uint64_t id = 0;
  std::uint32_t items = 1;
  std::uint64_t bytes = 0;
  std::int32_t priority = 0;
  TimePoint submitted{};
  TimePoint deadline = kNever;

  /// When half of the time until its deadline is over.
  TimePoint half_time() const noexcept {
    return deadline == kNever ? kNever : submitted + (deadline - submitted) / 2;
  }
  RequestState state() const noexcept { return state_; }

 private:
  friend class GatherTable;
  friend class WaitingLine;
  RequestState state_ = RequestState::kWaiting;
  LinePlace place_;
  std::uint64_t part_ = 0;  ///< The part of a batch that failed in which it waits; 0: in the line.
};

/// When it would have been submitted to have its place without a priority, which is worth `level`.
inline TimePoint order_of(const Waiting& request, Duration level) noexcept {
  return request.submitted - level * request.priority;
}

using WaitingPtr = std::shared_ptr<Waiting>;
/// Lists of them grow while calls end: that does not fail.
using WaitingList = SureVector<WaitingPtr>;

}  // namespace corelane::scheduler
