#include "scheduler/plan/composite.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <string>

namespace corelane::scheduler {
namespace {

using std::chrono::milliseconds;
using Sizes = std::vector<std::uint32_t>;

constexpr std::uint32_t kAny = std::numeric_limits<std::uint32_t>::max();

std::vector<PlanGroup> groups_of(const std::vector<Range>& ranges, bool padding = false) {
  std::vector<PlanGroup> groups;
  for (const Range& range : ranges) groups.push_back({range, padding, true});
  return groups;
}
std::vector<PlanGroup> fixed_1_4_8(bool padding = false) {
  return groups_of({{1, 1}, {4, 4}, {8, 8}}, padding);
}

Sizes items_of(const std::vector<PlannedCall>& calls) {
  Sizes sizes;
  for (const PlannedCall& call : calls) sizes.push_back(call.items);
  return sizes;
}
std::uint32_t sum(const Sizes& sizes) { return std::accumulate(sizes.begin(), sizes.end(), 0U); }

/// S(k) = 4 + k ms in every group.
Duration four_and_one(std::uint32_t /*group*/, std::uint32_t size) {
  return milliseconds(4) + size * milliseconds(1);
}
Duration time_of(const std::vector<PlannedCall>& calls, const CostOf& cost) {
  Duration time{0};
  for (const PlannedCall& call : calls) time += cost(call.group, call.items + call.padding);
  return time;
}

TEST(PlanGreedy, TheTableOfOneFourEight) {
  const std::vector<Sizes> table = {
      {1},          {1, 1},          {1, 1, 1},          {4},
      {4, 1},       {4, 1, 1},       {4, 1, 1, 1},       {8},
      {8, 1},       {8, 1, 1},       {8, 1, 1, 1},       {8, 4},
      {8, 4, 1},    {8, 4, 1, 1},    {8, 4, 1, 1, 1},    {8, 8},
      {8, 8, 1},    {8, 8, 1, 1},    {8, 8, 1, 1, 1},    {8, 8, 4},
      {8, 8, 4, 1}, {8, 8, 4, 1, 1}, {8, 8, 4, 1, 1, 1}, {8, 8, 8},
  };
  ASSERT_EQ(table.size(), 24U);
  for (std::uint32_t n = 1; n <= 24; ++n) {
    const std::vector<PlannedCall> calls = plan_greedy(n, fixed_1_4_8());
    EXPECT_EQ(items_of(calls), table[n - 1]) << n;
    for (const PlannedCall& call : calls) {
      EXPECT_EQ(call.group, call.items == 1 ? 0U : call.items / 4) << n;
      EXPECT_EQ(call.padding, 0U);
    }
  }
}

TEST(PlanGreedy, RangesTakeAsManyAsTheyCan) {
  EXPECT_EQ(items_of(plan_greedy(9, groups_of({{1, 1}, {2, 3}}))), (Sizes{3, 3, 3}));
  EXPECT_EQ(items_of(plan_greedy(9, groups_of({{1, 2}, {5, 8}}))), (Sizes{8, 1}));
  EXPECT_EQ(items_of(plan_greedy(6, groups_of({{1, 1}, {3, 3}, {4, 4}}))), (Sizes{4, 1, 1}));
  EXPECT_EQ(items_of(plan_greedy(10, groups_of({{1, 1}, {5, 8}}))), (Sizes{8, 1, 1}));
}

TEST(PlanGreedy, OfGroupsWithOneMaxTheFirstTakesTheItems) {
  EXPECT_EQ(plan_greedy(5, groups_of({{1, 4}, {1, 4}})),
            (std::vector<PlannedCall>{{0, 4, 0}, {0, 1, 0}}));
  EXPECT_EQ(plan_greedy(2, groups_of({{3, 4}, {1, 4}})), (std::vector<PlannedCall>{{1, 2, 0}}));
}

TEST(PlanGreedy, WhatNoGroupCanTakeIsLeft) {
  EXPECT_TRUE(plan_greedy(0, fixed_1_4_8()).empty());
  EXPECT_TRUE(plan_greedy(3, {}).empty());
  EXPECT_TRUE(plan_greedy(3, groups_of({{4, 8}})).empty());
  EXPECT_EQ(items_of(plan_greedy(11, groups_of({{4, 8}}))), (Sizes{8}));
}

TEST(PlanGreedy, WhatIsFewerThanEachMinGoesIntoOnePaddedCall) {
  EXPECT_EQ(plan_greedy(3, groups_of({{8, 8}, {4, 6}, {4, 8}}, true)),
            (std::vector<PlannedCall>{{1, 3, 1}}));
  EXPECT_EQ(plan_greedy(11, groups_of({{4, 8}}, true)),
            (std::vector<PlannedCall>{{0, 8, 0}, {0, 3, 1}}));
  std::vector<PlanGroup> groups = groups_of({{4, 4}, {8, 8}});
  groups[1].padding = true;
  EXPECT_EQ(plan_greedy(7, groups), (std::vector<PlannedCall>{{0, 4, 0}, {1, 3, 5}}));
}

TEST(Plans, GroupsThatAreNotAvailableTakeNothing) {
  std::vector<PlanGroup> groups = fixed_1_4_8(true);
  groups[2].available = false;
  EXPECT_EQ(items_of(plan_greedy(9, groups)), (Sizes{4, 4, 1}));
  EXPECT_EQ(items_of(plan_by_cost(8, groups, four_and_one)), (Sizes{4, 4}));
  groups[0].available = false;
  EXPECT_EQ(items_of(plan_greedy(7, groups)), (Sizes{4, 3}));
  EXPECT_EQ(plan_by_cost(7, groups, four_and_one),
            (std::vector<PlannedCall>{{1, 4, 0}, {1, 3, 1}}));
  groups[1].available = false;
  EXPECT_TRUE(plan_greedy(7, groups).empty());
  EXPECT_TRUE(plan_by_cost(7, groups, four_and_one).empty());
}

TEST(Plans, RangesThatHoldNothingTakeNothing) {
  const std::vector<PlanGroup> groups = groups_of({{0, 0}, {0, 4}, {5, 3}, {1, 2}}, true);
  EXPECT_EQ(plan_greedy(3, groups), (std::vector<PlannedCall>{{3, 2, 0}, {3, 1, 0}}));
  EXPECT_EQ(plan_by_cost(3, groups, four_and_one),
            (std::vector<PlannedCall>{{3, 2, 0}, {3, 1, 0}}));
}

TEST(PlanByCost, PaddedCallsReplaceManySmallOnes) {
  struct Case {
    std::uint32_t items;
    int greedy_ms;
    int cost_ms;
    std::vector<PlannedCall> calls;
  };
  const std::vector<Case> cases = {
      {1, 5, 5, {{0, 1, 0}}},
      {2, 10, 8, {{1, 2, 2}}},
      {3, 15, 8, {{1, 3, 1}}},
      {4, 8, 8, {{1, 4, 0}}},
      {5, 13, 12, {{2, 5, 3}}},
      {7, 23, 12, {{2, 7, 1}}},
      {9, 17, 17, {{2, 8, 0}, {0, 1, 0}}},
      {11, 27, 20, {{2, 8, 0}, {1, 3, 1}}},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(time_of(plan_greedy(c.items, fixed_1_4_8(true)), four_and_one),
              milliseconds(c.greedy_ms))
        << c.items;
    const std::vector<PlannedCall> calls = plan_by_cost(c.items, fixed_1_4_8(true), four_and_one);
    EXPECT_EQ(calls, c.calls) << c.items;
    EXPECT_EQ(time_of(calls, four_and_one), milliseconds(c.cost_ms)) << c.items;
  }
}

TEST(PlanByCost, NothingIsPaddedWithoutLeave) {
  EXPECT_EQ(items_of(plan_by_cost(7, fixed_1_4_8(), four_and_one)), (Sizes{4, 1, 1, 1}));
  std::vector<PlanGroup> groups = fixed_1_4_8();
  groups[1].padding = true;
  EXPECT_EQ(plan_by_cost(7, groups, four_and_one),
            (std::vector<PlannedCall>{{1, 4, 0}, {1, 3, 1}}));
}

TEST(PlanByCost, FindsWhatGreedyMisses) {
  const std::vector<PlanGroup> one_three_four = groups_of({{1, 1}, {3, 3}, {4, 4}});
  EXPECT_EQ(items_of(plan_by_cost(6, one_three_four, four_and_one)), (Sizes{3, 3}));
  EXPECT_EQ(items_of(plan_by_cost(10, groups_of({{1, 1}, {5, 8}}), four_and_one)), (Sizes{5, 5}));
  // Greedy would leave one item of these.
  EXPECT_EQ(items_of(plan_by_cost(9, groups_of({{4, 8}}), four_and_one)), (Sizes{5, 4}));
}

TEST(PlanByCost, OfEqualTimesFewerCallsThenLessPaddingThenGreedy) {
  const CostOf proportional = [](std::uint32_t, std::uint32_t size) {
    return size * milliseconds(1);
  };
  const std::vector<PlanGroup> one_three_four = groups_of({{1, 1}, {3, 3}, {4, 4}});
  EXPECT_EQ(items_of(plan_by_cost(6, one_three_four, proportional)), (Sizes{3, 3}));
  const CostOf free = [](std::uint32_t, std::uint32_t) { return Duration{0}; };
  EXPECT_EQ(plan_by_cost(3, fixed_1_4_8(true), free), (std::vector<PlannedCall>{{1, 3, 1}}));
  EXPECT_EQ(plan_by_cost(7, groups_of({{1, 4}, {1, 4}}), free),
            plan_greedy(7, groups_of({{1, 4}, {1, 4}})));
}

TEST(PlanByCost, HostileTimesAreHeldToTheirBounds) {
  const CostOf longest = [](std::uint32_t, std::uint32_t) { return Duration::max(); };
  EXPECT_EQ(items_of(plan_by_cost(17, fixed_1_4_8(), longest)), (Sizes{8, 8, 1}));
  const CostOf negative = [](std::uint32_t, std::uint32_t) { return Duration::min(); };
  EXPECT_EQ(items_of(plan_by_cost(17, fixed_1_4_8(), negative)), (Sizes{8, 8, 1}));
}

TEST(Plans, AGroupWithoutABoundTakesMillionsInAFewSteps) {
  std::uint64_t asked = 0;
  const CostOf cost = [&](std::uint32_t group, std::uint32_t size) {
    ++asked;
    return four_and_one(group, size);
  };
  for (const std::uint32_t items : {10'000'000U, kAny}) {
    asked = 0;
    const std::vector<PlanGroup> groups = groups_of({{1, 1}, {1, kAny}, {kAny, kAny}}, true);
    EXPECT_EQ(items_of(plan_greedy(items, groups)), (Sizes{items}));
    EXPECT_EQ(items_of(plan_by_cost(items, groups, cost)), (Sizes{items}));
    EXPECT_LT(asked, 200U);
  }
  // A padded call of 4 billion is the only way here.
  EXPECT_EQ(plan_by_cost(3, groups_of({{kAny, kAny}}, true), cost),
            (std::vector<PlannedCall>{{0, 3, kAny - 3}}));
}

TEST(PlanByCost, AboveTheExactPartTheCheapestCallsPerItemComeFirst) {
  const std::vector<PlannedCall> calls = plan_by_cost(10'007, fixed_1_4_8(true), four_and_one);
  EXPECT_EQ(sum(items_of(calls)), 10'007U);
  EXPECT_EQ(calls.size(), 1251U);
  EXPECT_EQ(calls.back(), (PlannedCall{2, 7, 1}));
  // S falls to nothing for groups of 300: greedy, which takes 512 first, is dearer.
  const CostOf dip = [](std::uint32_t group, std::uint32_t size) {
    return group == 1 ? milliseconds(1) : size * milliseconds(1);
  };
  EXPECT_EQ(items_of(plan_by_cost(900, groups_of({{1, 512}, {300, 300}}), dip)),
            (Sizes{300, 300, 300}));
  // Nothing fits, and nothing may be padded.
  EXPECT_TRUE(plan_by_cost(1000, groups_of({{1001, 2000}}), four_and_one).empty());
  // Calls of the least time per item would leave ten.
  EXPECT_EQ(items_of(plan_by_cost(
                510, groups_of({{100, 100}, {255, 255}}),
                [](std::uint32_t g, std::uint32_t) { return milliseconds(g == 0 ? 1 : 100); })),
            (Sizes{255, 255}));
}

}  // namespace
}  // namespace corelane::scheduler
