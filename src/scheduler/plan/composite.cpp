#include "scheduler/plan/composite.h"

#include <algorithm>
#include <compare>
#include <limits>

namespace corelane::scheduler {
namespace {

constexpr std::int64_t kLongestCall = 1'000'000'000'000'000;  // 11 days in nanoseconds.
constexpr std::int64_t kLongestPlan = std::numeric_limits<std::int64_t>::max() / 2;

/// What plans are compared by, first things first.
struct Score {
  std::uint64_t left = 0;  ///< Items that no call takes.
  std::int64_t time = 0;
  std::uint64_t calls = 0;
  std::uint64_t padding = 0;
  auto operator<=>(const Score&) const = default;
};

Score operator+(const Score& a, const Score& b) noexcept {
  return {a.left + b.left, std::min(a.time + b.time, kLongestPlan), a.calls + b.calls,
          a.padding + b.padding};
}

/// A call that a plan may hold.
struct Option {
  PlannedCall call;
  Score score;
};

/// The groups that take calls, those of the largest max first.
std::vector<std::uint32_t> greedy_order(std::span<const PlanGroup> groups) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    const Range& range = groups[g].range;
    if (groups[g].available && range.min >= 1 && range.min <= range.max) order.push_back(g);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return groups[a].range.max > groups[b].range.max;
  });
  return order;
}

class CostPlanner {
 public:
  CostPlanner(std::span<const PlanGroup> groups, const CostOf& cost)
      : groups_(groups), cost_(cost), order_(greedy_order(groups)) {}

  std::vector<PlannedCall> plan(std::uint32_t items) const;
  Score score_of(std::uint32_t items, const std::vector<PlannedCall>& calls) const;

 private:
  Option option(std::uint32_t group, std::uint32_t items, std::uint32_t padding) const;
  std::vector<Option> options_up_to(std::uint32_t items) const;
  std::optional<PlannedCall> cheapest_per_item(std::uint32_t items) const;
  void plan_exactly(std::uint32_t items, std::vector<PlannedCall>& calls) const;

  std::span<const PlanGroup> groups_;
  const CostOf& cost_;
  std::vector<std::uint32_t> order_;
};

Option CostPlanner::option(std::uint32_t group, std::uint32_t items, std::uint32_t padding) const {
  const std::int64_t time = cost_(group, items + padding).count();
  return {{group, items, padding},
          {0, std::clamp(time, std::int64_t{0}, kLongestCall), 1, padding}};
}

/// All calls that take at most `items`, in the order in which equal plans prefer them.
std::vector<Option> CostPlanner::options_up_to(std::uint32_t items) const {
  std::vector<Option> options;
  for (const std::uint32_t g : order_) {
    const auto [min, max] = groups_[g].range;
    for (std::uint32_t n = std::min(max, items); n >= min; --n) options.push_back(option(g, n, 0));
    if (!groups_[g].padding || min == 1) continue;
    const Option padded = option(g, min, 0);
    for (std::uint32_t n = std::min(min - 1, items); n >= 1; --n) {
      options.push_back(padded);
      options.back().call = {g, n, min - n};
      options.back().score.padding = min - n;
    }
  }
  return options;
}

/// Appends the best plan: best[n] is the best one for n items, and `last` its call that was chosen.
void CostPlanner::plan_exactly(std::uint32_t items, std::vector<PlannedCall>& calls) const {
  const std::vector<Option> options = options_up_to(items);
  std::vector<Score> best(items + 1);
  std::vector<const Option*> last(items + 1, nullptr);
  for (std::uint32_t n = 1; n <= items; ++n) {
    // One item stays. Any call that fits is better, since what is left is compared first.
    best[n] = best[n - 1] + Score{1, 0, 0, 0};
    for (const Option& option : options) {
      if (option.call.items > n) continue;
      const Score score = best[n - option.call.items] + option.score;
      if (score < best[n]) {
        best[n] = score;
        last[n] = &option;
      }
    }
  }
  for (std::uint32_t n = items; n > 0; n -= last[n] == nullptr ? 1 : last[n]->call.items)
    if (last[n] != nullptr) calls.push_back(last[n]->call);
}

/// The call with the least time per item among min, max and the powers of two between; of equal
/// ones the largest.
std::optional<PlannedCall> CostPlanner::cheapest_per_item(std::uint32_t items) const {
  std::optional<Option> best;
  const auto consider = [&](const Option& option) {
    const auto time = static_cast<double>(option.score.time);
    const auto least = best ? static_cast<double>(best->score.time) : 0.0;
    // Time per item, compared crosswise: in doubles, since the products do not fit 64 bits.
    const double mine = time * (best ? best->call.items : 0);
    const double theirs = least * option.call.items;
    if (!best || mine < theirs || (mine == theirs && option.call.items > best->call.items))
      best = option;
  };
  for (const std::uint32_t g : order_) {
    const auto [min, max] = groups_[g].range;
    if (min > items) {
      if (groups_[g].padding) consider(option(g, items, min - items));
      continue;
    }
    const std::uint32_t top = std::min(max, items);
    consider(option(g, top, 0));
    for (std::uint64_t n = 1; n < top; n *= 2)
      if (n > min) consider(option(g, static_cast<std::uint32_t>(n), 0));
    if (min < top) consider(option(g, min, 0));
  }
  return best ? std::optional(best->call) : std::nullopt;
}

std::vector<PlannedCall> CostPlanner::plan(std::uint32_t items) const {
  std::vector<PlannedCall> calls;
  while (items > kExactItems) {
    const std::optional<PlannedCall> call = cheapest_per_item(items);
    // No group takes anything, so that the plan is empty.
    if (!call) break;
    const std::uint32_t times = std::max((items - kExactItems) / call->items, 1U);
    calls.insert(calls.end(), times, *call);
    items -= times * call->items;
  }
  if (items <= kExactItems) plan_exactly(items, calls);
  std::stable_sort(calls.begin(), calls.end(), [&](const PlannedCall& a, const PlannedCall& b) {
    if (a.items != b.items) return a.items > b.items;
    if (a.group == b.group) return a.padding < b.padding;
    const std::uint32_t max_a = groups_[a.group].range.max;
    const std::uint32_t max_b = groups_[b.group].range.max;
    return max_a != max_b ? max_a > max_b : a.group < b.group;
  });
  return calls;
}

Score CostPlanner::score_of(std::uint32_t items, const std::vector<PlannedCall>& calls) const {
  Score sum{items, 0, 0, 0};
  std::optional<Option> previous;  // Plans repeat calls: each is asked for once.
  for (const PlannedCall& call : calls) {
    if (!previous || previous->call != call)
      previous = option(call.group, call.items, call.padding);
    sum = sum + previous->score;
    sum.left -= call.items;
  }
  return sum;
}

}  // namespace

std::optional<PlannedCall> greedy_call(std::uint32_t items, std::span<const PlanGroup> groups) {
  if (items == 0) return std::nullopt;
  std::optional<std::uint32_t> largest, padded;
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    const Range& range = groups[g].range;
    if (!groups[g].available || range.min == 0 || range.min > range.max) continue;
    if (range.min <= items) {
      if (!largest || range.max > groups[*largest].range.max) largest = g;
    } else if (groups[g].padding) {
      if (!padded || range.min < groups[*padded].range.min) padded = g;
    }
  }
  if (largest) return PlannedCall{*largest, std::min(items, groups[*largest].range.max), 0};
  if (padded) return PlannedCall{*padded, items, groups[*padded].range.min - items};
  return std::nullopt;
}

std::vector<PlannedCall> plan_greedy(std::uint32_t items, std::span<const PlanGroup> groups) {
  std::vector<PlannedCall> calls;
  while (const std::optional<PlannedCall> call = greedy_call(items, groups)) {
    calls.push_back(*call);
    items -= call->items;
  }
  return calls;
}

std::vector<PlannedCall> plan_by_cost(std::uint32_t items, std::span<const PlanGroup> groups,
                                      const CostOf& cost) {
  const CostPlanner planner(groups, cost);
  std::vector<PlannedCall> calls = planner.plan(items);
  std::vector<PlannedCall> greedy = plan_greedy(items, groups);
  const bool as_good = planner.score_of(items, greedy) <= planner.score_of(items, calls);
  return as_good ? greedy : calls;
}

}  // namespace corelane::scheduler
