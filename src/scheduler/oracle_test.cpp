/// The oracle against cases that were worked out by hand, and the laws that each run keeps.
#include "scheduler/testing/oracle.h"

#include <gtest/gtest.h>

#include <map>

#include "scheduler/testing/workload.h"

namespace corelane::scheduler::oracle {
namespace {

Times ms(std::initializer_list<double> times) {
  Times arrivals;
  for (const double t : times) arrivals.push_back(static_cast<Nanoseconds>(t * kMillisecond));
  return arrivals;
}
Start start(double time_ms, std::uint32_t group, std::uint32_t instance, std::size_t first,
            std::uint32_t items) {
  return {static_cast<Nanoseconds>(time_ms * kMillisecond), group, instance, first, items};
}

Node full(Node node) {
  node.full = true;
  return node;
}

TEST(Oracle, AnIdleInstanceStartsAtOnceAndABusyOneGathers) {
  EXPECT_EQ(simulate(w1(), ms({0, 1, 2, 3, 40})),
            (Starts{start(0, 0, 0, 0, 1), start(5, 0, 0, 1, 3), start(40, 0, 0, 4, 1)}));
}

TEST(Oracle, TwentyArrivalsDuringOneCallLeaveAsEightEightFour) {
  Times arrivals(21, kMillisecond);
  arrivals[0] = 0;
  EXPECT_EQ(simulate(w1(), arrivals), (Starts{start(0, 0, 0, 0, 1), start(5, 0, 0, 1, 8),
                                              start(17, 0, 0, 9, 8), start(29, 0, 0, 17, 4)}));
}

TEST(Oracle, OneDecisionFollowsAllEventsOfAnInstant) {
  // The call ends at 5 ms, when two arrive: they go with the one that waited.
  EXPECT_EQ(simulate(w1(), ms({0, 4, 5, 5})), (Starts{start(0, 0, 0, 0, 1), start(5, 0, 0, 1, 3)}));
  // The timeout of the first and the arrival of the second.
  EXPECT_EQ(simulate(full(w1()), ms({0, 2})), (Starts{start(2, 0, 0, 0, 2)}));
}

TEST(Oracle, FullBatchesLeaveAtOnceAndOthersAtTheTimeoutOfTheirOldest) {
  EXPECT_EQ(simulate(full(w1()), Times(8, 0)), (Starts{start(0, 0, 0, 0, 8)}));
  EXPECT_EQ(simulate(full(w1()), ms({0, 1.5, 2.5})),
            (Starts{start(2, 0, 0, 0, 2), start(8, 0, 0, 2, 1)}));
  // Nine: the ninth waits for its own timeout though an instance is idle.
  Node two = full(w1());
  two.groups[0].instances = 2;
  EXPECT_EQ(simulate(two, Times(9, 0)), (Starts{start(0, 0, 0, 0, 8), start(2, 0, 1, 8, 1)}));
  two.timeout = 0;
  EXPECT_EQ(simulate(two, Times(9, 0)), (Starts{start(0, 0, 0, 0, 8), start(0, 0, 1, 8, 1)}));
}

TEST(Oracle, AFullBatchOfACompositeIsSpreadOverItsGroups) {
  // Three by the timeout; eight at once, and again by the idle groups while both eights run.
  EXPECT_EQ(simulate(full(w3()), ms({0, 0, 0})),
            (Starts{start(2, 0, 0, 0, 1), start(2, 0, 1, 1, 1), start(7, 0, 0, 2, 1)}));
  EXPECT_EQ(simulate(full(w3()), Times(24, 0)),
            (Starts{start(0, 2, 0, 0, 8), start(0, 2, 1, 8, 8), start(0, 1, 0, 16, 4),
                    start(0, 1, 1, 20, 4)}));
}

TEST(Oracle, ACompositeTakesTheLargestGroupsThatAreIdle) {
  // 4, 1, 1, and the last one when an instance of single items has ended.
  EXPECT_EQ(simulate(w3(), Times(7, 0)), (Starts{start(0, 1, 0, 0, 4), start(0, 0, 0, 4, 1),
                                                 start(0, 0, 1, 5, 1), start(5, 0, 0, 6, 1)}));
  // 26 of 31 start at once. No four comes together again: the rest goes one by one, every 5 ms.
  EXPECT_EQ(simulate(w3(), Times(31, 0)),
            (Starts{start(0, 2, 0, 0, 8), start(0, 2, 1, 8, 8), start(0, 1, 0, 16, 4),
                    start(0, 1, 1, 20, 4), start(0, 0, 0, 24, 1), start(0, 0, 1, 25, 1),
                    start(5, 0, 0, 26, 1), start(5, 0, 1, 27, 1), start(10, 0, 0, 28, 1),
                    start(10, 0, 1, 29, 1), start(15, 0, 0, 30, 1)}));
}

TEST(Oracle, CallsOfNoTimeEndInARoundOfTheirOwn) {
  const Node node{{{1, 1, 2, {0}}}, false, 0};
  EXPECT_EQ(simulate(node, ms({0, 0, 0, 1})), (Starts{start(0, 0, 0, 0, 1), start(0, 0, 1, 1, 1),
                                                      start(0, 0, 0, 2, 1), start(1, 0, 0, 3, 1)}));
}

TEST(Oracle, WhatNoGroupTakesStays) {
  const Node node{{{2, 2, 1, {1, 1}}}, false, 0};
  EXPECT_EQ(simulate(node, ms({0, 0, 0})), (Starts{start(0, 0, 0, 0, 2)}));
  EXPECT_TRUE(simulate(node, {}).empty());
}

TEST(Oracle, ARequestThatNoIdleInstanceTakesIsPassedOver) {
  const Node node{
      {{1, 2, 1, {1 * kMillisecond, 2 * kMillisecond}}, {4, 4, 1, linear(4 * kMillisecond, 0, 4)}},
      false,
      0};
  // Two fours, of which one waits; two ones pass it, the third waits with it.
  EXPECT_EQ(simulate(node, ms({0, 1, 1, 1, 1.5}), {4, 4, 1, 1, 1}),
            (Starts{start(0, 1, 0, 0, 4), start(1, 0, 0, 2, 2), start(3, 0, 0, 4, 1),
                    start(4, 1, 0, 1, 4)}));
}

/// The requests of each call: those from its first one on that are in no earlier call, until it
/// has its items.
std::vector<std::vector<std::size_t>> requests_of(const Starts& starts, const Sizes& sizes) {
  std::vector<bool> gone(sizes.size(), false);
  std::vector<std::vector<std::size_t>> calls;
  for (const Start& s : starts) {
    calls.emplace_back();
    std::uint32_t items = 0;
    for (std::size_t i = s.first; i < sizes.size() && items < s.items; ++i) {
      if (gone[i]) continue;
      gone[i] = true;
      items += sizes[i];
      calls.back().push_back(i);
    }
    EXPECT_EQ(items, s.items);
  }
  return calls;
}

TEST(Oracle, AnInstanceThatTakesARequestByItselfIsNotLeftToALaterOne) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Node node = [&] {
      Node any = any_node(seed);
      any.full = false;
      return any;
    }();
    const Times arrivals = poisson(seed, 200 + static_cast<double>(seed % 300), 150);
    const Sizes sizes = any_sizes(seed, node, arrivals.size());
    const Starts starts = simulate(node, arrivals, sizes);
    const auto calls = requests_of(starts, sizes);
    std::vector<std::size_t> call_of(arrivals.size(), starts.size());
    for (std::size_t c = 0; c < calls.size(); ++c)
      for (const std::size_t i : calls[c]) call_of[i] = c;
    for (std::size_t c = 0; c < calls.size(); ++c) {
      const Group& group = node.groups[starts[c].group];
      for (std::size_t i = 0; i < starts[c].first; ++i) {
        const bool waits = call_of[i] > c;
        ASSERT_FALSE(waits && group.min <= sizes[i] && sizes[i] <= group.max)
            << "seed " << seed << ", request " << i << ", call " << c;
      }
    }
    for (const std::size_t c : call_of) ASSERT_LT(c, starts.size()) << "seed " << seed;
  }
}

/// Each item once and in order, sizes in range, one call of an instance at a time.
void expect_lawful(const Node& node, const Times& arrivals, const Starts& starts) {
  std::size_t next = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Nanoseconds> busy_until;
  for (const Start& s : starts) {
    const Group& group = node.groups[s.group];
    ASSERT_LT(s.instance, group.instances);
    ASSERT_GE(s.items, group.min);
    ASSERT_LE(s.items, group.max);
    ASSERT_EQ(s.first, next);
    next += s.items;
    ASSERT_LE(next, arrivals.size());
    ASSERT_LE(arrivals[next - 1], s.time);
    Nanoseconds& until = busy_until[{s.group, s.instance}];
    ASSERT_LE(until, s.time);
    until = s.time + group.times[s.items - 1];
  }
  EXPECT_EQ(next, arrivals.size());
}

TEST(Oracle, EveryRunKeepsTheLaws) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Nanoseconds grid = seed % 2 == 0 ? 1 : kMillisecond / 2;
    for (const Node& node : {w1(), w2(), w3(), any_node(seed)}) {
      const double rate = 100.0 * static_cast<double>(1 + seed % 9);
      const Times arrivals = poisson(seed, rate, 200, grid);
      expect_lawful(node, arrivals, simulate(node, arrivals));
      expect_lawful(full(node), arrivals, simulate(full(node), arrivals));
    }
  }
}

TEST(Workload, ASeedMakesTheSameArrivalsAtTheAskedRate) {
  EXPECT_EQ(poisson(7, 500, 100), poisson(7, 500, 100));
  EXPECT_NE(poisson(7, 500, 100), poisson(8, 500, 100));
  const Times arrivals = poisson(7, 500, 20'000);
  EXPECT_NEAR(static_cast<double>(arrivals.back()) / 1e9, 40, 1);
  for (const Nanoseconds t : poisson(7, 500, 100, kMillisecond)) EXPECT_EQ(t % kMillisecond, 0);
}

}  // namespace
}  // namespace corelane::scheduler::oracle
