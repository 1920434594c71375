// How long the rest of a line waits for more where its requests have deadlines.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/gather/gather_table.h"

namespace corelane::scheduler {
namespace {

using std::chrono::milliseconds;

TimePoint instant(double ms) {
  return TimePoint{} + Duration(static_cast<Duration::rep>(ms * 1e6));
}

/// One instance that takes 1 to `max` items, with batching_timeout 200 ms.
struct PatientTable {
  explicit PatientTable(std::uint32_t max, Batching batching = Batching::kFull,
                        Deadlines deadlines = Deadlines::kPredict)
      : table({{{1, max}, 1, false}}, settings(batching, deadlines)) {}

  static NodeSettings settings(Batching batching, Deadlines deadlines) {
    NodeSettings made;
    made.batching = batching;
    made.batching_timeout = milliseconds(200);
    made.deadlines = deadlines;
    return made;
  }
  void enter(double ms, double timeout_ms = 0, std::int32_t priority = 0) {
    auto request = std::make_shared<Waiting>();
    request->id = ++last;
    request->priority = priority;
    request->submitted = instant(ms);
    if (timeout_ms > 0) request->deadline = instant(ms + timeout_ms);
    table.enter(request, instant(ms));
  }
  /// "2 deadline": the items of the only call that starts; "": none.
  std::string decide(double ms) {
    decision = table.decide(instant(ms));
    if (decision.starts.empty()) return "";
    const Start& start = decision.starts.front();
    running.push_back(start);
    return std::to_string(start.items) + " " + std::string(reason_name(start.reason));
  }
  void end(double ms) {
    const Start start = running.front();
    running.erase(running.begin());
    (void)table.ended(start.batch, false, false, instant(ms));
    for (const WaitingPtr& request : start.requests)
      (void)table.answer(request, RequestState::kDone);
  }

  GatherTable table;
  Decision decision;
  std::vector<Start> running;
  std::uint64_t last = 0;
};

TEST(GatherPatience, ARequestWaitsForMoreForHalfOfItsTimeWhereItsCallIsUnknown) {
  for (const Deadlines deadlines : {Deadlines::kPredict, Deadlines::kExpire}) {
    PatientTable one(8, Batching::kFull, deadlines);
    one.enter(0, 100);
    EXPECT_EQ(one.decide(0), "");
    EXPECT_EQ(one.decision.wake, instant(50));
    one.enter(10);
    EXPECT_EQ(one.decide(10), "");
    EXPECT_EQ(one.decision.wake, instant(50));
    EXPECT_EQ(one.decide(50), "2 deadline");
    EXPECT_TRUE(one.decision.expired.empty());
  }
}

TEST(GatherPatience, TheTimeOfItsCallIsNotSpent) {
  PatientTable one(8);
  one.enter(0);
  EXPECT_EQ(one.decide(200), "1 timeout");
  one.end(240);  // S(1) is 40 ms.
  one.enter(300, 100);
  EXPECT_EQ(one.decide(300), "");
  EXPECT_EQ(one.decision.wake, instant(330)) << "it can spare 60 ms";
  EXPECT_EQ(one.decide(330), "1 deadline");
  one.end(370);
  one.enter(400, 41);
  EXPECT_EQ(one.decide(400.5), "1 deadline") << "there is no time to wait";
}

TEST(GatherPatience, DeadlinesThatAreFarChangeNothing) {
  PatientTable one(8);
  one.enter(0, 1'000);
  EXPECT_EQ(one.decide(0), "");
  EXPECT_EQ(one.decision.wake, instant(200));
  EXPECT_EQ(one.decide(200), "1 timeout");
}

TEST(GatherPatience, OfAFullBatchTheRestAloneCounts) {
  PatientTable one(2);
  one.enter(0, 20);
  one.enter(1, 20);
  one.enter(2, 100);
  EXPECT_EQ(one.decide(3), "2 full");
  one.end(4);
  EXPECT_EQ(one.decide(4), "");
  EXPECT_EQ(one.decision.wake, instant(51.75)) << "half of what it can spare beside 0.5 ms";
}

TEST(GatherPatience, ALearnedWaitEndsBeforeADeadline) {
  PatientTable one(8, Batching::kLearned);
  for (int i = 0; i < 8; ++i) one.enter(10 * i);
  EXPECT_EQ(one.decide(70), "8 full");
  one.end(170);  // Eight items take 100 ms, and one comes every 10 ms.
  one.enter(175, 40);
  EXPECT_EQ(one.decide(190), "1 deadline");
}

TEST(GatherPatience, OfALineWithoutALargestCallTheFirstOnesCount) {
  PatientTable one(UINT32_MAX);
  one.enter(0, 0, -3);
  one.enter(10, 60);
  one.enter(20, 0, 5);
  EXPECT_EQ(one.decide(20), "");
  EXPECT_EQ(one.decision.wake, instant(40));
  EXPECT_EQ(one.decide(40), "3 deadline");
}

TEST(GatherPatience, PartsOfAFailedBatchLeaveInTheirOrder) {
  PatientTable one(64);
  for (int i = 0; i < 64; ++i) one.enter(0);
  EXPECT_EQ(one.decide(0), "64 full");
  std::uint64_t calls = 0, single = 0;
  for (double now = 1; !one.running.empty(); ++now) {
    const Start start = one.running.front();
    one.running.erase(one.running.begin());
    ++calls;
    const auto back = one.table.ended(start.batch, true, true, instant(now));
    if (back.empty()) {
      ASSERT_EQ(start.requests.size(), 1U);
      (void)one.table.answer(start.requests[0], RequestState::kFailed);
      ++single;
    }
    (void)one.decide(now);
  }
  EXPECT_EQ(calls, 127U) << "2n - 1";
  EXPECT_EQ(single, 64U);
  EXPECT_TRUE(one.table.idle());
}

}  // namespace
}  // namespace corelane::scheduler
