/// A node without threads: the table of decisions, driven by arrivals and scripted times of calls.
#pragma once

#include <algorithm>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "scheduler/gather/gather_table.h"
#include "scheduler/testing/oracle.h"

namespace corelane::scheduler {

/// What became of the requests of a simulation.
struct Simulated {
  std::vector<oracle::Start> starts;
  std::vector<double> latencies_ms;  ///< Of requests that were done, in the order of their ends.
  Statistics figures;
  TimePoint end{};
};

/// Runs `arrivals` (in nanoseconds, not falling) of `sizes` items (empty: one each) through a node
/// of `settings` whose calls take the times of `node`, each request with `timeout` (0: none). Ends
/// of calls come before arrivals of the same instant, and one decision after all of them.
class Simulator {
 public:
  Simulator(const oracle::Node& node, NodeSettings settings) : node_(node) {
    settings.batching = node.full ? Batching::kFull : settings.batching;
    settings.batching_timeout = Duration(node.timeout);
    std::vector<GatherGroup> groups;
    for (const oracle::Group& group : node.groups)
      groups.push_back({{group.min, group.max}, group.instances, false});
    table_.emplace(std::move(groups), std::move(settings));
  }

  Simulated run(const oracle::Times& arrivals, Duration timeout = {},
                const oracle::Sizes& sizes = {}) {
    std::size_t next = 0;
    TimePoint wake = kNever;
    for (;;) {
      TimePoint now = wake;
      if (next < arrivals.size()) now = std::min(now, at(arrivals[next]));
      if (!ends_.empty()) now = std::min(now, ends_.begin()->first.first);
      if (now == kNever) break;
      while (!ends_.empty() && ends_.begin()->first.first == now) end(now);
      for (; next < arrivals.size() && at(arrivals[next]) == now; ++next)
        arrive(next, sizes.empty() ? 1 : sizes[next], now, timeout);
      wake = decide(now);
      result_.end = now;
    }
    result_.figures = table_->tally().figures();
    return std::move(result_);
  }

 private:
  static TimePoint at(oracle::Nanoseconds time) { return TimePoint{} + Duration(time); }

  void arrive(std::size_t index, std::uint32_t items, TimePoint now, Duration timeout) {
    auto request = std::make_shared<Waiting>();
    request->id = index + 1;
    request->items = items;
    request->submitted = now;
    if (timeout > Duration{}) request->deadline = now + timeout;
    if (table_->hopeless(*request, now))
      table_->refuse(request, RequestState::kRejected);
    else
      table_->enter(request, now);
  }

  void end(TimePoint now) {
    const Start start = ends_.begin()->second;
    ends_.erase(ends_.begin());
    (void)table_->ended(start.batch, false, false, now);
    for (const WaitingPtr& request : start.requests) {
      if (!table_->answer(request, RequestState::kDone)) continue;
      const std::chrono::duration<double, std::milli> took = now - request->submitted;
      result_.latencies_ms.push_back(took.count());
    }
  }

  TimePoint decide(TimePoint now) {
    const Decision decision = table_->decide(now);
    for (const Start& start : decision.starts) {
      const oracle::Group& group = node_.groups[start.group];
      const TimePoint until = now + Duration(group.times[start.items + start.padding - 1]);
      ends_.emplace(std::pair(until, start.batch), start);
      result_.starts.push_back({(now - TimePoint{}).count(), start.group, start.instance,
                                static_cast<std::size_t>(start.requests.front()->id - 1),
                                start.items});
    }
    return decision.wake;
  }

  const oracle::Node node_;
  std::optional<GatherTable> table_;
  std::map<std::pair<TimePoint, std::uint64_t>, Start> ends_;
  Simulated result_;
};

}  // namespace corelane::scheduler
