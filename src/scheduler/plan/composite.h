/// How many items which group of a composite (`a&b&c`) takes: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "corelane/base/clock.h"
#include "corelane/scheduler/statistics.h"

namespace corelane::scheduler {

enum class Plan : std::uint8_t { kGreedy, kCost };

/// A group as a plan sees it.
struct PlanGroup {
  Range range;
  bool padding = false;   ///< A call may be filled up to range.min.
  bool available = true;  ///< It has an instance for the call.
};

/// One call: `items` of the line, and `padding` more to reach the group's min.
struct PlannedCall {
  std::uint32_t group = 0;
  std::uint32_t items = 0;
  std::uint32_t padding = 0;
  friend bool operator==(const PlannedCall&, const PlannedCall&) = default;
};

/// Expected time of a call of `group` with `size` items, padding included.
using CostOf = std::function<Duration(std::uint32_t group, std::uint32_t size)>;

/// The calls for `items`: the group with the largest max whose min they reach takes as many as it
/// can, and so on with the rest; of groups with one max the first. What is fewer than each min goes
/// into one padded call, of the first group with the least min that may pad. Without one it is
/// left: the sum of the calls is then less than `items`. Groups that are not available, or whose
/// range holds nothing, take nothing. The answer has an entry for each call: a group of max 1 makes
/// as many as there are items.
std::vector<PlannedCall> plan_greedy(std::uint32_t items, std::span<const PlanGroup> groups);
/// Its first call; nothing where it has none.
std::optional<PlannedCall> greedy_call(std::uint32_t items, std::span<const PlanGroup> groups);

/// plan_by_cost() finds the best of all plans for up to so many items.
inline constexpr std::uint32_t kExactItems = 256;

/// The calls whose times together are the least, padded ones included; of several the one of
/// fewer calls, then of less padding, then the greedy one. Covers as many items as can be covered.
/// Larger calls come first. Of more than kExactItems, calls of the least time per item take what is
/// above; the plan is then still never dearer than the greedy one and leaves no more items.
/// Steps: kExactItems times the sizes (at most kExactItems) of each group, and one for each call.
/// `cost` is asked for sizes up to kExactItems or of padded calls, and above for powers of two, min
/// and max; times below 0 count as 0, those above 11 days as 11 days.
std::vector<PlannedCall> plan_by_cost(std::uint32_t items, std::span<const PlanGroup> groups,
                                      const CostOf& cost);

}  // namespace corelane::scheduler
