/// The timers of a clock: an ordered list of calls, without threads or locks of its own.
#pragma once

#include <functional>
#include <utility>

#include "base/reserve.h"
#include "corelane/base/clock.h"

namespace corelane {

/// Calls ordered by time, then by creation. Not safe for threads; the clock guards it.
class TimerQueue {
 public:
  /// Must not throw; the clocks log what it throws, since no caller could handle it.
  using Call = std::function<void()>;

  Clock::TimerId add(TimePoint when, Call call) noexcept {
    const Clock::TimerId id = ++last_id_;
    when_of_.emplace(id, when);
    calls_.emplace(Key{when, id}, std::move(call));
    return id;
  }
  /// The call of `id`, taken out so that the owner destroys it outside its lock; false when the
  /// queue does not hold it.
  bool remove(Clock::TimerId id, Call& removed) {
    const auto entry = when_of_.find(id);
    if (entry == when_of_.end()) return false;
    const auto call = calls_.find(Key{entry->second, id});
    removed = std::move(call->second);
    calls_.erase(call);
    when_of_.erase(entry);
    return true;
  }
  /// When the first call falls due; kNever when there is none.
  TimePoint next() const { return calls_.empty() ? kNever : calls_.begin()->first.first; }
  /// Takes out the first call; the queue must not be empty.
  Call pop() {
    auto first = calls_.begin();
    Call call = std::move(first->second);
    when_of_.erase(first->first.second);
    calls_.erase(first);
    return call;
  }

 private:
  using Key = std::pair<TimePoint, Clock::TimerId>;
  SureMap<Key, Call> calls_;
  SureMap<Clock::TimerId, TimePoint> when_of_;
  Clock::TimerId last_id_ = 0;
};

}  // namespace corelane
