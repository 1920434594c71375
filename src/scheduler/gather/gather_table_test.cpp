#include "scheduler/gather/gather_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace corelane::scheduler {
namespace {

using std::chrono::milliseconds;

TimePoint at(double ms) { return TimePoint{} + Duration(static_cast<Duration::rep>(ms * 1e6)); }

/// A table whose calls end when the test says so.
struct TableBench {
  explicit TableBench(const std::vector<GatherGroup>& groups, NodeSettings with = {})
      : table(groups, std::move(with)) {}

  WaitingPtr submit(double ms, RequestOptions options = {}) {
    auto request = std::make_shared<Waiting>();
    request->id = ++last;
    request->items = options.items;
    request->priority = options.priority;
    request->submitted = at(ms);
    if (options.timeout > Duration{}) request->deadline = at(ms) + options.timeout;
    table.enter(request, at(ms));
    return request;
  }
  WaitingList submit(double ms, int count) {
    WaitingList some;
    for (int i = 0; i < count; ++i) some.push_back(submit(ms));
    return some;
  }
  /// "8 6" for the items of the calls that start.
  std::string decide(double ms) {
    last_decision = table.decide(at(ms));
    std::string text;
    for (const Start& start : last_decision.starts) {
      text += (text.empty() ? "" : " ") + std::to_string(start.items);
      started.push_back(start);
    }
    return text;
  }
  /// The oldest call ends; its requests are done.
  WaitingList end(double ms, bool failed = false, bool again = false) {
    const Start start = started.front();
    started.erase(started.begin());
    auto back = table.ended(start.batch, failed, again, at(ms));
    for (const WaitingPtr& request : start.requests)
      table.answer(request, failed ? RequestState::kFailed : RequestState::kDone);
    return back;
  }
  void adds_up() const {
    const Statistics& all = table.tally().figures();
    EXPECT_EQ(all.submitted, all.done + all.failed + all.rejected + all.cancelled + all.expired +
                                 all.waiting + all.running);
  }

  GatherTable table;
  Decision last_decision;
  std::vector<Start> started;
  std::uint64_t last = 0;
};

std::vector<GatherGroup> one(std::uint32_t min, std::uint32_t max, std::uint32_t instances = 1) {
  return {{{min, max}, instances, false}};
}

NodeSettings full(double timeout_ms) {
  NodeSettings settings;
  settings.batching = Batching::kFull;
  settings.batching_timeout = at(timeout_ms) - TimePoint{};
  return settings;
}

TEST(GatherTable, AnIdleInstanceNeverWaits) {
  TableBench bench(one(1, 8));
  bench.submit(0);
  EXPECT_EQ(bench.decide(0), "1");
  EXPECT_EQ(bench.started[0].reason, Reason::kIdle);
  bench.submit(1, 20);
  EXPECT_EQ(bench.decide(1), "");
  bench.end(5);
  EXPECT_EQ(bench.decide(5), "8");
  EXPECT_EQ(bench.started[0].reason, Reason::kFull);
  bench.end(17);
  EXPECT_EQ(bench.decide(17), "8");
  bench.end(29);
  EXPECT_EQ(bench.decide(29), "4");
  bench.adds_up();
}

TEST(GatherTable, AFullBatchLeavesAtOnceAndAPartOfOneAtTheTimeoutOfTheOldest) {
  TableBench bench(one(1, 4), full(2.5));
  bench.submit(0);
  EXPECT_EQ(bench.decide(0), "");
  EXPECT_EQ(bench.last_decision.wake, at(2.5));
  bench.submit(2);
  EXPECT_EQ(bench.decide(2), "");
  EXPECT_EQ(bench.last_decision.wake, at(2.5)) << "a late one does not start the timer again";
  EXPECT_EQ(bench.decide(2.5), "2");
  EXPECT_EQ(bench.started[0].reason, Reason::kTimeout);
  bench.end(3);
  bench.submit(4, 4);
  EXPECT_EQ(bench.decide(4), "4");
  EXPECT_EQ(bench.started[0].reason, Reason::kFull);
}

TEST(GatherTable, ATimeoutOfZeroTakesAllThatWaits) {
  TableBench bench(one(1, 4), full(0));
  bench.submit(0, 3);
  EXPECT_EQ(bench.decide(0), "3");
}

TEST(GatherTable, AMaxOfOneNeverWaits) {
  TableBench bench(one(1, 1, 2), full(10));
  bench.submit(0, 3);
  EXPECT_EQ(bench.decide(0), "1 1");
}

TEST(GatherTable, ItemsThatDoNotFitTogetherLeaveInCallsOfTheirOwn) {
  TableBench bench(one(1, 4));
  for (int i = 0; i < 3; ++i) bench.submit(0, RequestOptions{.items = 3});
  EXPECT_EQ(bench.decide(0), "3");
  bench.end(1);
  EXPECT_EQ(bench.decide(1), "3");
  bench.end(2);
  EXPECT_EQ(bench.decide(2), "3");
  EXPECT_FALSE(bench.table.fits(5));
  EXPECT_EQ(bench.table.parts_of(11), (std::vector<std::uint32_t>{4, 4, 3}));
}

TEST(GatherTable, TheInstancesOfACompositeTakeWhatTheirGroupsTake) {
  TableBench bench({{{1, 1}, 2, false}, {{4, 4}, 2, false}, {{8, 8}, 2, false}});
  bench.submit(0, 7);
  EXPECT_EQ(bench.decide(0), "4 1 1");
  EXPECT_EQ(bench.table.line().items(), 1U) << "each instance of group 0 has a call";
  bench.end(1);
  EXPECT_EQ(bench.decide(1), "") << "only 4 and 8 are idle";
  bench.submit(1, 3);
  EXPECT_EQ(bench.decide(1), "4");
}

TEST(GatherTable, ACallMayBeFilledUpWhereTheGroupAllowsIt) {
  NodeSettings settings;
  settings.plan = Plan::kCost;
  TableBench bench({{{1, 1}, 1, false}, {{8, 8}, 1, true}}, settings);
  // S(k) = 4 + k ms: seven calls of one cost 35, one filled call 12.
  bench.submit(0);
  EXPECT_EQ(bench.decide(0), "1");
  bench.end(5);
  bench.submit(5, 8);
  EXPECT_EQ(bench.decide(5), "8");
  bench.end(17);
  bench.submit(20, 7);
  EXPECT_EQ(bench.decide(20), "7");
  EXPECT_EQ(bench.started[0].padding, 1U);
  EXPECT_EQ(bench.started[0].group, 1U);
}

TEST(GatherTable, RequestsShareOneCallThatIsFilledUp) {
  TableBench bench({{{4, 4}, 1, true}});
  bench.submit(0, 7);
  EXPECT_EQ(bench.decide(0), "4");
  bench.end(1);
  EXPECT_EQ(bench.decide(1), "3");
  EXPECT_EQ(bench.started[0].padding, 1U);
}

TEST(GatherTable, ARequestThatNoIdleInstanceTakesIsPassedOver) {
  TableBench bench({{{1, 2}, 1, false}, {{4, 4}, 1, false}});
  bench.submit(0, RequestOptions{.items = 4});
  EXPECT_EQ(bench.decide(0), "4");
  const auto large = bench.submit(1, RequestOptions{.items = 4});
  const auto small = bench.submit(1, 5);
  EXPECT_EQ(bench.decide(1), "2") << "two of those after it";
  EXPECT_EQ(bench.started[1].reason, Reason::kFull) << "five may leave";
  bench.end(2);
  EXPECT_EQ(bench.decide(2), "4") << "its own instance is idle: not three small ones";
  EXPECT_EQ(bench.started[1].requests, WaitingList{large});
  EXPECT_EQ(large->state(), RequestState::kRunning);
  EXPECT_EQ(bench.table.line().items(), 3U);
  bench.adds_up();
}

TEST(GatherTable, ARequestOfOneItemIsPassedOverWhereTheIdleInstanceNeedsMore) {
  TableBench bench({{{1, 1}, 1, false}, {{4, 4}, 1, false}});
  bench.submit(0);
  EXPECT_EQ(bench.decide(0), "1");
  const auto one = bench.submit(1);
  bench.submit(1, RequestOptions{.items = 4});
  EXPECT_EQ(bench.decide(1), "4");
  bench.end(2);
  EXPECT_EQ(bench.decide(2), "1");
  EXPECT_EQ(one->state(), RequestState::kRunning);
}

TEST(GatherTable, AtMostSoManyRequestsArePassedOver) {
  for (const std::uint32_t more : {0U, 1U}) {
    TableBench bench({{{1, 1}, 1, false}, {{4, 4}, 1, false}});
    for (std::uint32_t i = 0; i < 1 + GatherTable::kMostPassed + more; ++i)
      bench.submit(0, RequestOptions{.items = 4});
    bench.submit(0);
    EXPECT_EQ(bench.decide(0), more == 0 ? "4 1" : "4");
  }
}

TEST(GatherTable, WhatIsPassedOverIsNoPartOfAFullBatch) {
  TableBench bench({{{1, 2}, 1, false}, {{8, 8}, 1, false}}, full(5));
  bench.submit(0, RequestOptions{.items = 8});
  EXPECT_EQ(bench.decide(0), "8");
  bench.submit(1, RequestOptions{.items = 8});
  bench.submit(2);
  EXPECT_EQ(bench.decide(2), "");
  EXPECT_EQ(bench.last_decision.wake, at(7));
  EXPECT_EQ(bench.decide(7), "1");
  EXPECT_EQ(bench.started[1].reason, Reason::kTimeout);
}

TEST(GatherTable, ARequestThatEndsInTheRestWaitsWithIt) {
  TableBench bench(one(1, 4, 3), full(5));
  for (int i = 0; i < 3; ++i) bench.submit(i, RequestOptions{.items = 3});
  EXPECT_EQ(bench.decide(2), "3 3");
  EXPECT_EQ(bench.last_decision.wake, at(7));
  EXPECT_EQ(bench.decide(7), "3");
}

TEST(GatherTable, ThePartsOfALargeRequestAreAllOfItWhereTheRestIsPadded) {
  const GatherTable table({{{4, 4}, 1, true}}, {});
  EXPECT_EQ(table.parts_of(10), (std::vector<std::uint32_t>{4, 4, 2}));
  EXPECT_EQ(table.parts_of(12), (std::vector<std::uint32_t>{4, 4, 4}));
}

TEST(GatherTable, ALargeRequestIsSplitByTheRuleOfThePlan) {
  using Parts = std::vector<std::uint32_t>;
  for (const Plan plan : {Plan::kGreedy, Plan::kCost}) {
    const bool greedy = plan == Plan::kGreedy;
    NodeSettings settings;
    settings.plan = plan;
    TableBench bench({{{1, 1}, 1, false}, {{5, 8}, 1, false}}, settings);
    bench.submit(0);
    bench.decide(0);
    bench.end(5);  // S(1) = 5 ms.
    bench.submit(5, 8);
    bench.decide(5);
    bench.end(17);  // S(8) = 12 ms.
    EXPECT_EQ(bench.table.parts_of(10), greedy ? Parts({8, 1, 1}) : Parts({5, 5}));
    const GatherTable table({{{1, 1}, 1, false}, {{3, 3}, 1, false}, {{4, 4}, 1, false}}, settings);
    EXPECT_EQ(table.parts_of(6), greedy ? Parts({4, 1, 1}) : Parts({3, 3}));
  }
}

TEST(GatherTable, PrioritiesAgeSoThatALowOneWaitsABoundedTimeLonger) {
  NodeSettings settings;
  settings.ageing = milliseconds(10);
  TableBench bench(one(1, 1), settings);
  bench.submit(0);
  bench.decide(0);
  const auto low = bench.submit(1);
  const auto high = bench.submit(10.5, RequestOptions{.priority = 1});
  const auto later_high = bench.submit(11.5, RequestOptions{.priority = 1});
  bench.end(12);
  bench.decide(12);
  EXPECT_EQ(bench.started[0].requests[0], high) << "it came 9.5 ms after the low one";
  bench.end(13);
  bench.decide(13);
  EXPECT_EQ(bench.started[0].requests[0], low) << "the next high one came 10.5 ms after it";
  bench.end(14);
  bench.decide(14);
  EXPECT_EQ(bench.started[0].requests[0], later_high);
}

TEST(GatherTable, ADeadlineEndsARequestInTheLineAndInACall) {
  TableBench bench(one(1, 1));
  const auto running = bench.submit(0, RequestOptions{.timeout = milliseconds(50)});
  bench.decide(0);
  const auto waiting = bench.submit(1, RequestOptions{.timeout = milliseconds(9)});
  bench.decide(1);
  EXPECT_EQ(bench.last_decision.wake, at(10));
  bench.decide(10);
  ASSERT_EQ(bench.last_decision.expired.size(), 1U);
  EXPECT_EQ(waiting->state(), RequestState::kExpired);
  EXPECT_EQ(bench.last_decision.wake, at(50));
  bench.decide(50);
  ASSERT_EQ(bench.last_decision.late.size(), 1U);
  EXPECT_EQ(running->state(), RequestState::kExpired);
  bench.end(90'000);
  EXPECT_EQ(running->state(), RequestState::kExpired) << "the answer stays";
  EXPECT_EQ(bench.table.tally().figures().late, 1U);
  bench.adds_up();
}

/// S(k) = 4 + k ms, learned from a call of one and a call of eight.
void learn(TableBench& bench) {
  bench.submit(0);
  bench.decide(0);
  bench.end(5);
  bench.submit(5, 8);
  bench.decide(5);
  bench.end(17);
}

TEST(GatherTable, WhatWouldBeLateIsDroppedBeforeItsBatch) {
  TableBench bench(one(1, 8));
  learn(bench);
  bench.submit(20);
  bench.decide(20);
  WaitingList some;
  for (int i = 0; i < 4; ++i)
    some.push_back(bench.submit(21, RequestOptions{.timeout = milliseconds(14)}));
  for (int i = 0; i < 10; ++i) bench.submit(21, RequestOptions{.timeout = milliseconds(50)});
  bench.end(25);
  EXPECT_EQ(bench.decide(25), "8") << "four would end at 37, their deadline is 35";
  EXPECT_EQ(bench.last_decision.expired, some);
  bench.adds_up();
}

TEST(GatherTable, WhereNothingElseWaitsTheBatchIsMadeSmallerInstead) {
  TableBench bench(one(1, 8));
  learn(bench);
  bench.submit(20);
  bench.decide(20);
  bench.submit(21, 4);
  const auto urgent = bench.submit(21, RequestOptions{.timeout = milliseconds(11)});
  bench.end(25);
  EXPECT_EQ(bench.decide(25), "3") << "25 + S(3) = 32, its deadline";
  EXPECT_EQ(bench.started[0].requests[0], urgent);
  EXPECT_EQ(bench.started[0].reason, Reason::kDeadline);
}

TEST(GatherTable, ARequestThatCouldNotEndInTimeIsKnownAtItsSubmission) {
  TableBench bench(one(1, 8));
  Waiting request;
  request.deadline = at(100) + milliseconds(4);
  EXPECT_FALSE(bench.table.hopeless(request, at(100))) << "nothing was measured yet";
  learn(bench);
  EXPECT_FALSE(bench.table.hopeless(request, at(100))) << "nothing is there: it is tried";
  bench.submit(99);
  bench.decide(99);
  EXPECT_TRUE(bench.table.hopeless(request, at(100)));
  request.deadline = at(100) + milliseconds(5);
  EXPECT_FALSE(bench.table.hopeless(request, at(100)));
}

TEST(GatherTable, OneSlowCallDoesNotRefuseAllOthersForGood) {
  TableBench bench(one(1, 1));
  bench.submit(0);
  bench.decide(0);
  bench.end(50);
  for (int i = 1; i <= 10; ++i) {
    const RequestOptions limit{.timeout = milliseconds(30)};
    Waiting request;
    request.deadline = at(100 * i + 30);
    EXPECT_FALSE(bench.table.hopeless(request, at(100 * i)));
    const auto entered = bench.submit(100 * i, limit);
    EXPECT_EQ(bench.decide(100 * i), "1");
    bench.end(100 * i + 5);
    EXPECT_EQ(entered->state(), RequestState::kDone);
  }
}

TEST(GatherTable, AFailedBatchRunsAgainInHalvesUntilTheBadOneIsAlone) {
  TableBench bench(one(1, 8));
  bench.submit(0);
  bench.decide(0);
  const auto some = bench.submit(1, 8);
  bench.end(5);
  EXPECT_EQ(bench.decide(5), "8");
  const auto& bad = some[5];
  int calls = 0;
  for (double now = 6; !bench.started.empty() && now < 40; ++now) {
    ++calls;
    const auto& in = bench.started.front().requests;
    const bool failed = std::ranges::find(in, bad) != in.end();
    bench.end(now, failed, true);
    bench.decide(now);
  }
  for (const auto& request : some)
    EXPECT_EQ(request->state(), request == bad ? RequestState::kFailed : RequestState::kDone);
  EXPECT_EQ(calls, 7) << "8, 4, 4, 2, 2, 1, 1";
  bench.adds_up();
}

TEST(GatherTable, APartRunsOnAGroupThatFillsItUp) {
  TableBench bench({{{4, 4}, 1, true}});
  const auto some = bench.submit(0, 4);
  EXPECT_EQ(bench.decide(0), "4");
  EXPECT_EQ(bench.end(1, true, true).size(), 4U);
  for (int now = 1; now <= 2; ++now) {
    ASSERT_EQ(bench.decide(now), "2") << "the greedy plan fills up what would wait without end";
    EXPECT_EQ(bench.started[0].padding, 2U);
    EXPECT_EQ(bench.started[0].reason, Reason::kIsolate);
    bench.end(now + 0.5);
  }
  for (const auto& request : some) EXPECT_EQ(request->state(), RequestState::kDone);
  bench.adds_up();
}

TEST(GatherTable, WithoutIsolationAFailedBatchEnds) {
  NodeSettings settings;
  settings.isolate = false;
  TableBench bench(one(1, 8), settings);
  bench.submit(0, 4);
  bench.decide(0);
  EXPECT_TRUE(bench.end(5, true, true).empty());
  EXPECT_EQ(bench.table.tally().figures().failed, 4U);
}

TEST(GatherTable, ACancelledRequestLeavesTheLineAndItsPart) {
  TableBench bench(one(1, 4));
  bench.submit(0);
  bench.decide(0);
  const auto some = bench.submit(1, 4);
  EXPECT_TRUE(bench.table.remove(some[1], RequestState::kCancelled));
  EXPECT_FALSE(bench.table.remove(some[1], RequestState::kCancelled));
  bench.end(2);
  EXPECT_EQ(bench.decide(2), "3");
  EXPECT_FALSE(bench.table.remove(some[0], RequestState::kCancelled)) << "it runs";
  EXPECT_EQ(bench.end(3, true, true).size(), 3U);
  EXPECT_TRUE(bench.table.remove(some[0], RequestState::kCancelled)) << "it waits in a part";
  EXPECT_TRUE(bench.table.remove(some[2], RequestState::kCancelled));
  EXPECT_EQ(bench.decide(3), "1");
  bench.adds_up();
}

TEST(GatherTable, InstancesThatAreTooManyGoWhenTheirCallsEnd) {
  TableBench bench(one(1, 1, 3));
  bench.submit(0, 5);
  EXPECT_EQ(bench.decide(0), "1 1 1");
  bench.table.resize(0, 1);
  bench.end(1);
  bench.end(2);
  EXPECT_EQ(bench.decide(2), "1") << "instance 0 alone takes calls";
  EXPECT_TRUE(bench.table.retired(0, 1));
  EXPECT_FALSE(bench.table.retired(0, 2)) << "its call runs";
  bench.table.resize(0, 2);
  EXPECT_EQ(bench.decide(3), "1");
}

TEST(GatherTable, ALearnedWaitEndsWithAFullBatchOrTheTimeout) {
  for (const bool fills : {false, true}) {
    NodeSettings settings;
    settings.batching = Batching::kLearned;
    settings.batching_timeout = milliseconds(3);
    TableBench bench(one(1, 32), settings);
    bench.submit(0);
    EXPECT_EQ(bench.decide(0), "1") << "no rate is known yet";
    bench.end(41);  // S(k) = 40 + k ms.
    bench.submit(41, 8);
    bench.decide(41);
    while (!bench.started.empty()) {
      bench.end(89);
      bench.decide(89);
    }
    bench.submit(200);
    EXPECT_EQ(bench.decide(200), "1") << "the last one came long ago";
    for (int i = 0; i < 20; ++i) bench.submit(239 + 0.1 * i);
    bench.end(241);
    EXPECT_EQ(bench.decide(241), "") << "the next one comes in 0.1 ms, and saves a call";
    EXPECT_LE(bench.last_decision.wake, at(242));
    if (fills) {
      bench.submit(241.1, 12);
      EXPECT_EQ(bench.decide(241.1), "32");
      EXPECT_EQ(bench.started[0].reason, Reason::kFull);
    } else {
      EXPECT_EQ(bench.decide(242), "20") << "3 ms after the oldest";
      EXPECT_EQ(bench.started[0].reason, Reason::kTimeout);
    }
  }
}

}  // namespace
}  // namespace corelane::scheduler
