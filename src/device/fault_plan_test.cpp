#include <gtest/gtest.h>

#include "corelane/device/fault.h"

namespace corelane::device {
namespace {

TEST(FaultPlan, GrammarIsReadWhole) {
  const auto plan =
      parse_faults("hang=0.001,crash=0.002,slow=0.01,slow_ms=7,short=0.03,flip=0.04,oom=1,seed=9");
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->hang, 0.001);
  EXPECT_EQ(plan->crash, 0.002);
  EXPECT_EQ(plan->slow, 0.01);
  EXPECT_EQ(plan->slow_by, std::chrono::milliseconds(7));
  EXPECT_EQ(plan->short_result, 0.03);
  EXPECT_EQ(plan->flip, 0.04);
  EXPECT_EQ(plan->oom, 1);
  EXPECT_EQ(plan->seed, 9U);
  EXPECT_FALSE(parse_faults("")->any());
}

TEST(FaultPlan, LossHasItsTime) {
  const auto plan = parse_faults("lost=0.25,lost_ms=40");
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(plan->any());
  const auto faults = planned_faults(*plan);
  EXPECT_EQ(faults->lost_for(), std::chrono::milliseconds(40));
  int lost = 0;
  for (int i = 0; i < 20000; ++i) lost += faults->at_run(1, 1) == Fault::kLost ? 1 : 0;
  EXPECT_NEAR(lost, 5000, 300);
}

TEST(FaultPlan, NonsenseIsRefusedByName) {
  for (const char* text : {"hang", "hang=", "hang=2", "hang=-1", "hang=nan", "hang=1x", "bang=1",
                           "seed=1.5", "slow_ms=-1", "hang=0.5,crash=0.6", "crash=0.5,lost=0.6",
                           "short=0.6,flip=0.6", "lost_ms=-1", ",", "hang=0.1,,"}) {
    const auto plan = parse_faults(text);
    ASSERT_FALSE(plan.has_value()) << text;
    EXPECT_EQ(plan.error().code(), Code::kInvalidArgument);
  }
  EXPECT_NE(parse_faults("bang=1").error().message().find("flip"), std::string::npos);
}

TEST(FaultPlan, DrawsFollowProbabilitiesAndTheSeed) {
  FaultPlan plan;
  plan.hang = 0.1;
  plan.crash = 0.2;
  plan.slow = 0.3;
  auto one = planned_faults(plan);
  auto two = planned_faults(plan);
  int seen[4] = {};
  for (int i = 0; i < 20000; ++i) {
    const Fault fault = one->at_run(1, 1);
    ASSERT_EQ(fault, two->at_run(2, 2));
    ++seen[static_cast<int>(fault)];
  }
  EXPECT_NEAR(seen[static_cast<int>(Fault::kHang)], 2000, 300);
  EXPECT_NEAR(seen[static_cast<int>(Fault::kCrash)], 4000, 300);
  EXPECT_NEAR(seen[static_cast<int>(Fault::kSlow)], 6000, 300);
}

}  // namespace
}  // namespace corelane::device
