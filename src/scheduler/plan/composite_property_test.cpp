/// Plans of random composites against an exhaustive search and against each other.
#include <gtest/gtest.h>
// After GoogleTest.
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <tuple>

#include "scheduler/plan/composite.h"

namespace corelane::scheduler {
namespace {

using std::chrono::microseconds;

struct Composite {
  std::vector<PlanGroup> groups;
  std::vector<std::vector<int>> times;  ///< By group and size, microseconds.

  Duration cost(std::uint32_t group, std::uint32_t size) const {
    return microseconds(times[group][size % times[group].size()]);
  }
  CostOf costs() const {
    return [this](std::uint32_t group, std::uint32_t size) { return cost(group, size); };
  }
};

Composite any_composite(std::uint32_t largest) {
  Composite composite;
  const auto count = *rc::gen::inRange<std::uint32_t>(1, 5);
  for (std::uint32_t g = 0; g < count; ++g) {
    const auto min = *rc::gen::inRange<std::uint32_t>(1, largest + 1);
    const auto max = *rc::gen::inRange<std::uint32_t>(min, largest + 1);
    composite.groups.push_back(
        {{min, max}, *rc::gen::arbitrary<bool>(), *rc::gen::inRange(0, 4) > 0});
    composite.times.push_back(
        *rc::gen::container<std::vector<int>>(largest + 1, rc::gen::inRange(0, 20)));
  }
  return composite;
}

/// Items left, time, calls, padding.
using Score = std::tuple<std::uint64_t, std::int64_t, std::uint64_t, std::uint64_t>;

Score score_of(const Composite& composite, std::uint32_t items,
               const std::vector<PlannedCall>& calls) {
  Score sum{items, 0, 0, 0};
  for (const PlannedCall& call : calls) {
    std::get<0>(sum) -= call.items;
    std::get<1>(sum) += composite.cost(call.group, call.items + call.padding).count();
    std::get<2>(sum) += 1;
    std::get<3>(sum) += call.padding;
  }
  return sum;
}

/// What plan_by_cost() promises, by trying every first call of every rest.
Score best_of_all(const Composite& composite, std::uint32_t items) {
  std::vector<Score> best{{0, 0, 0, 0}};
  for (std::uint32_t n = 1; n <= items; ++n) {
    Score least{n, 0, 0, 0};
    for (std::uint32_t taken = 1; taken <= n; ++taken) {
      const auto [left, time, calls, padding] = best[n - taken];
      least = std::min(least, Score{left + taken, time, calls, padding});
      for (std::uint32_t g = 0; g < composite.groups.size(); ++g) {
        const PlanGroup& group = composite.groups[g];
        const std::uint32_t size = std::max(taken, group.range.min);
        if (!group.available || size > group.range.max || (size > taken && !group.padding))
          continue;
        least = std::min(least, Score{left, time + composite.cost(g, size).count(), calls + 1,
                                      padding + size - taken});
      }
    }
    best.push_back(least);
  }
  return best[items];
}

void expect_lawful(const Composite& composite, std::uint32_t items,
                   const std::vector<PlannedCall>& calls) {
  std::uint64_t taken = 0;
  std::uint32_t before = items;
  for (const PlannedCall& call : calls) {
    const PlanGroup& group = composite.groups.at(call.group);
    RC_ASSERT(group.available);
    RC_ASSERT(call.items >= 1U);
    RC_ASSERT(group.range.holds(call.items + call.padding));
    if (call.padding > 0) RC_ASSERT(group.padding && call.items + call.padding == group.range.min);
    RC_ASSERT(call.items <= before);
    before = call.items;
    taken += call.items;
  }
  RC_ASSERT(taken <= items);
}

RC_GTEST_PROP(PlanProperties, TheCostPlanIsTheBestOfAll, ()) {
  const Composite composite = any_composite(12);
  const auto items = *rc::gen::inRange<std::uint32_t>(0, 41);
  const std::vector<PlannedCall> calls = plan_by_cost(items, composite.groups, composite.costs());
  expect_lawful(composite, items, calls);
  RC_ASSERT(score_of(composite, items, calls) == best_of_all(composite, items));
}

RC_GTEST_PROP(PlanProperties, TheCostPlanIsNeverDearerThanTheGreedyOne, ()) {
  const auto largest = *rc::gen::element<std::uint32_t>(4, 40, 400);
  const Composite composite = any_composite(largest);
  const auto items = *rc::gen::inRange<std::uint32_t>(0, 3 * kExactItems);
  const std::vector<PlannedCall> greedy = plan_greedy(items, composite.groups);
  const std::vector<PlannedCall> calls = plan_by_cost(items, composite.groups, composite.costs());
  expect_lawful(composite, items, greedy);
  expect_lawful(composite, items, calls);
  RC_ASSERT(score_of(composite, items, calls) <= score_of(composite, items, greedy));
}

RC_GTEST_PROP(PlanProperties, WithAGroupOfOneNothingIsLeft, ()) {
  Composite composite = any_composite(40);
  composite.groups[0] = {{1, composite.groups[0].range.max}, false, true};
  const auto items = *rc::gen::inRange<std::uint32_t>(0, 3 * kExactItems);
  const std::vector<PlannedCall> greedy = plan_greedy(items, composite.groups);
  const std::vector<PlannedCall> calls = plan_by_cost(items, composite.groups, composite.costs());
  RC_ASSERT(std::get<0>(score_of(composite, items, greedy)) == 0U);
  RC_ASSERT(std::get<0>(score_of(composite, items, calls)) == 0U);
}

}  // namespace
}  // namespace corelane::scheduler
