/// A second reading of the records of a node: when requests came, when calls ended and which of
/// them failed is taken from the log; when each batch left, why, with whom, and on which instance
/// is derived again, without the scheduler's code. Greedy plan, `deadlines` "expire", no padding,
/// and no deadline for which a batch would leave before `batching_timeout`.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "corelane/scheduler/statistics.h"

namespace corelane::scheduler::replay {

struct Submitted {
  std::uint64_t id = 0;
  TimePoint at{}, deadline = kNever;
  std::uint32_t items = 1;
  std::int32_t priority = 0;
};
using Requests = std::vector<Submitted>;

struct Rules {
  std::vector<Topology::Group> groups;
  bool full = false, isolate = false;
  Duration timeout{}, ageing{};
};

class LogReplay {
 public:
  LogReplay(Rules rules, Requests submitted, const std::vector<BatchRecord>& log)
      : rules_(std::move(rules)), coming_(submitted.begin(), submitted.end()) {
    for (const BatchRecord& record : log) log_.emplace(record.id, record);
    for (const Topology::Group& group : rules_.groups) {
      busy_.emplace_back(group.instances, false);
      largest_ = std::max(largest_, group.range.max);
    }
  }
  /// A call that the log does not have never ends.
  void run() {
    for (TimePoint now = next({}); now != kNever; now = next(now)) {
      while (!ends_.empty() && ends_.begin()->first == now) end(now);
      for (; !coming_.empty() && coming_.front().at == now; coming_.pop_front())
        line_.push_back(coming_.front());
      const auto order = [&](const auto& each) { return each.at - rules_.ageing * each.priority; };
      std::ranges::stable_sort(line_, {}, order);
      expire(line_, now);
      for (Requests& part : parts_) expire(part, now);
      while (decide(now)) {
      }
    }
  }

  std::vector<BatchRecord> calls;  ///< As the log must have them.
  std::uint64_t done = 0, failed = 0, expired = 0;

 private:
  static std::uint64_t items(const Requests& some) {
    const auto add = [](std::uint64_t sum, const Submitted& each) { return sum + each.items; };
    return std::accumulate(some.begin(), some.end(), std::uint64_t{0}, add);
  }
  TimePoint next(TimePoint now) const {
    std::vector<TimePoint> times{kNever};
    if (!coming_.empty()) times.push_back(coming_.front().at);
    if (!ends_.empty()) times.push_back(ends_.begin()->first);
    for (const Submitted& each : line_)
      times.insert(times.end(), {each.deadline, each.at + rules_.timeout});
    for (const Requests& part : parts_)
      for (const Submitted& each : part) times.push_back(each.deadline);
    std::erase_if(times, [&](TimePoint time) { return time <= now; });
    return *std::ranges::min_element(times);
  }
  void expire(Requests& from, TimePoint now) {
    expired += std::erase_if(from, [&](const Submitted& each) { return each.deadline <= now; });
  }
  void end(TimePoint now) {
    auto [call, requests] = ends_.begin()->second;
    ends_.erase(ends_.begin());
    busy_[calls[call - 1].group][calls[call - 1].instance] = false;
    const bool bad = log_.at(call).failed, again = bad && rules_.isolate && requests.size() > 1;
    expire(requests, now);
    if (!again) (bad ? failed : done) += requests.size();
    if (!again) return;
    const auto middle = requests.begin() + static_cast<std::ptrdiff_t>((requests.size() + 1) / 2);
    parts_.emplace_back(requests.begin(), middle);
    parts_.emplace_back(middle, requests.end());
  }
  bool decide(TimePoint now) {
    const std::size_t before = calls.size();
    for (std::size_t p = 0; p < parts_.size();)
      p = start(parts_[p], 0, items(parts_[p]), Reason::kIsolate, now) > 0 ? 0 : p + 1;
    std::erase_if(parts_, [](const Requests& part) { return part.empty(); });
    std::uint64_t leaving = items(line_);
    Reason why = Reason::kIdle;
    if (const std::uint64_t rest = leaving % largest_; rules_.full && largest_ > 1) {
      TimePoint oldest = kNever;  // Of the rest, and of what reaches into it.
      std::uint64_t after = 0;
      for (auto each = line_.rbegin(); after < rest; after += (each++)->items)
        oldest = std::min(oldest, each->at);
      const bool waits = rest > 0 && oldest + rules_.timeout > now;
      why = rest == 0 || waits ? Reason::kFull : Reason::kTimeout;
      leaving -= waits ? rest : 0;
    }
    std::uint64_t open = leaving;
    for (std::size_t i = 0; i < line_.size() && i <= 64 && open > 0;) {
      const std::uint64_t own = line_[i].items;
      if (own > open && own < largest_) break;
      const Reason reason = open >= largest_ && largest_ > 1 ? Reason::kFull : why;
      const std::uint64_t taken = start(line_, i, std::max(open, own), reason, now);
      leaving -= std::min(leaving, taken);
      open = taken > 0 ? leaving : open - std::min(open, own);
      i = taken > 0 ? 0 : i + 1;
    }
    return calls.size() > before;
  }
  /// The group of the largest max with an idle instance that takes so few; their number: none.
  std::uint32_t group_for(std::uint64_t few) const {
    const auto count = static_cast<std::uint32_t>(rules_.groups.size());
    std::uint32_t best = count;
    for (std::uint32_t g = 0; g < count; ++g) {
      if (rules_.groups[g].range.min > few || std::ranges::count(busy_[g], false) == 0) continue;
      if (best == count || rules_.groups[g].range.max > rules_.groups[best].range.max) best = g;
    }
    return best;
  }
  /// A call of `from`, of the request `i` and those after it: its items; 0: no instance takes it.
  std::uint64_t start(Requests& from, std::size_t i, std::uint64_t open, Reason why, TimePoint at) {
    for (std::uint64_t most = std::min<std::uint64_t>(open, largest_); most > 0;) {
      const std::uint32_t group = group_for(most);
      if (group == rules_.groups.size()) return 0;
      const std::uint64_t room = std::min<std::uint64_t>(most, rules_.groups[group].range.max);
      const auto first = from.begin() + static_cast<std::ptrdiff_t>(i);
      auto last = first;
      for (most = 0; last != from.end() && most + last->items <= room; ++last) most += last->items;
      if (most < rules_.groups[group].range.min) continue;
      const auto idle = std::ranges::find(busy_[group], false);
      *idle = true;
      const auto index = static_cast<std::uint32_t>(idle - busy_[group].begin());
      const auto size = static_cast<std::uint32_t>(most);
      calls.push_back({calls.size() + 1, group, index, size, 0, why, kNever, at});
      BatchRecord& call = calls.back();
      for (auto each = first; each != last; ++each) {
        call.oldest = std::min(call.oldest, each->at);
        call.requests.push_back(each->id);
      }
      if (const auto found = log_.find(call.id); found != log_.end())
        ends_.emplace(found->second.ended, std::pair(call.id, Requests(first, last)));
      from.erase(first, last);
      return most;
    }
    return 0;
  }

  const Rules rules_;
  std::deque<Submitted> coming_;
  std::map<std::uint64_t, BatchRecord> log_;
  std::vector<std::vector<bool>> busy_;
  std::multimap<TimePoint, std::pair<std::uint64_t, Requests>> ends_;
  Requests line_;
  std::deque<Requests> parts_;
  std::uint32_t largest_ = 1;
};

}  // namespace corelane::scheduler::replay
