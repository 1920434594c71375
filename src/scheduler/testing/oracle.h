/// What one node must do, written a second time and as plainly as possible: a simulation that
/// shares no code with the scheduler and is compared with it event by event. Times are nanoseconds;
/// each request has one item; the plan is greedy, the line first-in-first-out.
///
/// At an instant, instances whose calls end become idle, then arrivals enter the line, then one
/// decision starts as many calls as it can. A call of no time ends in a round of its own at the
/// same instant. Which items may leave the line, with M the largest max of all groups:
/// - idle: all;
/// - full: batch after batch of M from the front, and a last one that is smaller, each only if it
/// has
///   M items or its first request has waited for the timeout.
/// Of the groups with an idle instance, the one of the largest max (the first of equal ones) whose
/// min they reach takes as many as it can into its idle instance of the lowest index, and so on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace corelane::scheduler::oracle {

using Nanoseconds = std::int64_t;

/// A part of `&`.
struct Group {
  std::uint32_t min = 1;
  std::uint32_t max = 1;
  std::uint32_t instances = 1;
  std::vector<Nanoseconds> times;  ///< times[n - 1] is S(n), for 1 to max.
};

struct Node {
  std::vector<Group> groups;
  bool full = false;        ///< batching "full", else "idle".
  Nanoseconds timeout = 0;  ///< batching_timeout.
};

/// A call of items `first` to `first + items - 1`, counted from 0 in the order of arrivals.
struct Start {
  Nanoseconds time = 0;
  std::uint32_t group = 0;
  std::uint32_t instance = 0;
  std::size_t first = 0;
  std::uint32_t items = 0;
  friend bool operator==(const Start&, const Start&) = default;
};

class Simulation {
 public:
  Simulation(const Node& node, const std::vector<Nanoseconds>& arrivals)
      : node_(node), arrivals_(arrivals) {
    for (const Group& group : node.groups) {
      ends_.emplace_back(group.instances, kIdle);
      largest_ = std::max<std::size_t>(largest_, group.max);
    }
  }

  std::vector<Start> run() {
    for (Nanoseconds now = next(kIdle); now != kNothing; now = next(now)) {
      for (std::vector<Nanoseconds>& group : ends_) {
        for (Nanoseconds& end : group)
          if (end == now) end = kIdle;
      }
      while (arrived_ < arrivals_.size() && arrivals_[arrived_] == now) ++arrived_;
      decide(now);
    }
    return starts_;
  }

 private:
  static constexpr Nanoseconds kIdle = -1;
  static constexpr Nanoseconds kNothing = std::numeric_limits<Nanoseconds>::max();

  /// The next instant at which something happens.
  Nanoseconds next(Nanoseconds now) const {
    Nanoseconds first = arrived_ < arrivals_.size() ? arrivals_[arrived_] : kNothing;
    for (const std::vector<Nanoseconds>& group : ends_) {
      for (const Nanoseconds end : group)
        if (end != kIdle) first = std::min(first, end);
    }
    for (std::size_t i = started_; node_.full && i < arrived_; ++i) {
      const Nanoseconds timer = arrivals_[i] + node_.timeout;
      if (timer > now) first = std::min(first, timer);
    }
    return first;
  }

  /// How many from the front of the line may leave it.
  std::size_t may_leave(Nanoseconds now) const {
    const std::size_t waiting = arrived_ - started_;
    if (!node_.full) return waiting;
    std::size_t leaving = 0;
    while (leaving < waiting) {
      const std::size_t batch = std::min(largest_, waiting - leaving);
      if (batch < largest_ && arrivals_[started_ + leaving] + node_.timeout > now) break;
      leaving += batch;
    }
    return leaving;
  }

  void decide(Nanoseconds now) {
    for (std::size_t items = may_leave(now); items > 0;) {
      const std::size_t g = group_for(items);
      if (g == node_.groups.size()) return;
      const std::size_t taken = std::min<std::size_t>(items, node_.groups[g].max);
      const auto instance = std::find(ends_[g].begin(), ends_[g].end(), kIdle);
      *instance = now + node_.groups[g].times[taken - 1];
      starts_.push_back({now, static_cast<std::uint32_t>(g),
                         static_cast<std::uint32_t>(instance - ends_[g].begin()), started_,
                         static_cast<std::uint32_t>(taken)});
      started_ += taken;
      items -= taken;
    }
  }

  std::size_t group_for(std::size_t items) const {
    std::size_t best = node_.groups.size();
    for (std::size_t g = 0; g < node_.groups.size(); ++g) {
      const bool idle = std::count(ends_[g].begin(), ends_[g].end(), kIdle) > 0;
      if (!idle || node_.groups[g].min > items) continue;
      if (best == node_.groups.size() || node_.groups[g].max > node_.groups[best].max) best = g;
    }
    return best;
  }

  const Node& node_;
  const std::vector<Nanoseconds>& arrivals_;
  std::vector<std::vector<Nanoseconds>> ends_;  ///< Of each instance's call, or kIdle.
  std::size_t largest_ = 0;
  std::size_t arrived_ = 0;
  std::size_t started_ = 0;
  std::vector<Start> starts_;
};

/// The calls of `node` for requests that arrive at these times (0 or later, not falling), in the
/// order in which they start.
inline std::vector<Start> simulate(const Node& node, const std::vector<Nanoseconds>& arrivals) {
  return Simulation(node, arrivals).run();
}

}  // namespace corelane::scheduler::oracle
