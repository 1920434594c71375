/// What one node must do, written a second time and as plainly as possible: a simulation that
/// shares no code with the scheduler and is compared with it event by event. Times are nanoseconds;
/// the plan is greedy, the line first-in-first-out.
/// At an instant, calls end, then arrivals enter the line, then one decision starts calls. May
/// leave, with M the largest max of all groups: "idle": all; "full": whole batches of M items from
/// the front, and the rest if its first request has waited for the timeout; a request of less than
/// M items on the border is of the rest. Of the idle groups whose min they reach, the one of the
/// largest max takes whole requests, up to the first that is too large; if those are less than its
/// min, the choice is made again for as many. Up to 64 requests that none takes are passed over.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace corelane::scheduler::oracle {

using Nanoseconds = std::int64_t;
using Times = std::vector<Nanoseconds>;
using Sizes = std::vector<std::uint32_t>;

struct Group {
  std::uint32_t min = 1, max = 1, instances = 1;
  Times times;  ///< times[n - 1] is S(n), for 1 to max.
};
struct Node {
  std::vector<Group> groups;
  bool full = false;        ///< batching "full", else "idle".
  Nanoseconds timeout = 0;  ///< batching_timeout.
};
/// A call: its first request, counted from 0 in the order of arrivals, and the items of all.
struct Start {
  Nanoseconds time = 0;
  std::uint32_t group = 0, instance = 0;
  std::size_t first = 0;
  std::uint32_t items = 0;
  friend bool operator==(const Start&, const Start&) = default;
};
using Starts = std::vector<Start>;

class Simulation {
 public:
  Simulation(const Node& node, const Times& arrivals, const Sizes& sizes)
      : node_(node), arrivals_(arrivals), sizes_(sizes) {
    for (const Group& group : node.groups) {
      ends_.emplace_back(group.instances, kIdle);
      largest_ = std::max<std::size_t>(largest_, group.max);
    }
  }

  Starts run() {
    for (Nanoseconds now = next(kIdle); now != kNothing; now = next(now)) {
      for (Times& group : ends_) std::replace(group.begin(), group.end(), now, kIdle);
      while (arrived_ < arrivals_.size() && arrivals_[arrived_] == now) line_.push_back(arrived_++);
      while (decide(now)) {
      }
    }
    return starts_;
  }

 private:
  static constexpr Nanoseconds kIdle = -1, kNothing = std::numeric_limits<Nanoseconds>::max();
  using Line = std::vector<std::size_t>;

  /// The next instant at which something happens.
  Nanoseconds next(Nanoseconds now) const {
    Nanoseconds first = arrived_ < arrivals_.size() ? arrivals_[arrived_] : kNothing;
    for (const Times& group : ends_)
      for (const Nanoseconds end : group) first = end == kIdle ? first : std::min(first, end);
    for (const std::size_t i : line_)
      if (const Nanoseconds timer = arrivals_[i] + node_.timeout; node_.full && timer > now)
        first = std::min(first, timer);
    return first;
  }

  std::size_t items(std::size_t request) const { return sizes_.empty() ? 1 : sizes_[request]; }

  /// How many items from the front of the line may leave it.
  std::size_t may_leave(Nanoseconds now) const {
    std::size_t waiting = 0, before = 0;
    for (const std::size_t i : line_) waiting += items(i);
    const std::size_t whole = waiting / largest_ * largest_;
    if (!node_.full || whole == waiting) return waiting;
    auto first = line_.begin();
    while (before + items(*first) <= whole) before += items(*first++);
    return arrivals_[*first] + node_.timeout > now ? whole : waiting;
  }

  bool decide(Nanoseconds now) {
    const std::size_t before = starts_.size();
    std::size_t leaving = may_leave(now), open = leaving;
    auto front = line_.begin();
    while (front != line_.end() && front - line_.begin() <= 64 && open > 0) {
      const std::size_t own = items(*front);
      if (own > open && own < largest_) break;
      const std::size_t taken = start(front, std::max(open, own), now);
      leaving -= std::min(leaving, taken);
      open = taken > 0 ? leaving : open - std::min(open, own);
      front = taken > 0 ? line_.begin() : front + 1;
    }
    return starts_.size() > before;
  }

  /// A call of requests from this one on, of which so many items may leave: how many it takes.
  std::size_t start(Line::iterator front, std::size_t open, Nanoseconds now) {
    for (std::size_t most = std::min(open, largest_), taken = 0; most > 0; most = taken) {
      const std::uint32_t g = group_for(most);
      if (g == node_.groups.size()) return 0;
      const Group& group = node_.groups[g];
      auto end = front;
      for (taken = 0; end != line_.end(); taken += items(*end++))
        if (taken + items(*end) > std::min<std::size_t>(most, group.max)) break;
      if (taken < group.min) continue;
      const auto instance = std::find(ends_[g].begin(), ends_[g].end(), kIdle);
      *instance = now + group.times[taken - 1];
      const auto index = static_cast<std::uint32_t>(instance - ends_[g].begin());
      starts_.push_back({now, g, index, *front, static_cast<std::uint32_t>(taken)});
      line_.erase(front, end);
      return taken;
    }
    return 0;
  }

  std::uint32_t group_for(std::size_t items) const {
    const auto count = static_cast<std::uint32_t>(node_.groups.size());
    std::uint32_t best = count;
    for (std::uint32_t g = 0; g < count; ++g) {
      const bool idle = std::count(ends_[g].begin(), ends_[g].end(), kIdle) > 0;
      if (!idle || node_.groups[g].min > items) continue;
      if (best == count || node_.groups[g].max > node_.groups[best].max) best = g;
    }
    return best;
  }

  const Node& node_;
  const Times& arrivals_;
  const Sizes& sizes_;
  std::vector<Times> ends_;  ///< Of each instance's call, or kIdle.
  std::size_t largest_ = 0, arrived_ = 0;
  Line line_;
  Starts starts_;
};

/// The calls for requests that arrive at these times, not falling; `sizes`: empty: one item each.
inline Starts simulate(const Node& node, const Times& arrivals, const Sizes& sizes = {}) {
  return Simulation(node, arrivals, sizes).run();
}

}  // namespace corelane::scheduler::oracle
