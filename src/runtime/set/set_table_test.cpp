#include "runtime/set/set_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace corelane::runtime {
namespace {

std::size_t total(const SetFigures& figures) {
  return figures.available + figures.held + figures.in_flight + figures.completed;
}

TEST(SetTable, GivesEachHandleOnce) {
  SetTable table(2, false);
  EXPECT_EQ(table.acquire(), 0U);
  EXPECT_EQ(table.acquire(), 1U);
  EXPECT_EQ(table.acquire(), std::nullopt);
  ASSERT_TRUE(table.release(1).ok());
  EXPECT_EQ(table.release(1).code(), Code::kWrongState) << "twice";
  EXPECT_EQ(table.figures().available, 1U);
  EXPECT_EQ(table.acquire(), 1U);
}

TEST(SetTable, CollectsInTheOrderOfCompletion) {
  SetTable table(3, false);
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(table.submit(*table.acquire(), 10 + i).ok());
  EXPECT_EQ(table.next(), std::nullopt);
  table.complete(2);
  table.complete(0);
  EXPECT_EQ(table.collect(), 2U);
  EXPECT_EQ(table.collect(), 0U);
  EXPECT_EQ(table.collect(), std::nullopt);
}

TEST(SetTable, CollectsInTheOrderOfSubmissionOnRequest) {
  SetTable table(3, true);
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(table.submit(*table.acquire(), i).ok());
  table.complete(2);
  table.complete(1);
  EXPECT_EQ(table.next(), std::nullopt);
  EXPECT_EQ(table.collect(), std::nullopt);
  table.complete(0);
  EXPECT_EQ(table.collect(), 0U);
  EXPECT_EQ(table.collect(2), 2U) << "by its id at any time";
  EXPECT_EQ(table.collect(), 1U);
}

TEST(SetTable, TheSameIdIsCollectedInTheOrderOfSubmission) {
  SetTable table(2, false);
  ASSERT_TRUE(table.submit(*table.acquire(), 7).ok());
  ASSERT_TRUE(table.submit(*table.acquire(), 7).ok());
  table.complete(1);
  EXPECT_EQ(table.collect(7), std::nullopt) << "the first one is in flight";
  table.complete(0);
  EXPECT_EQ(table.collect(7), 0U);
  EXPECT_EQ(table.collect(7), 1U);
  EXPECT_EQ(table.find(7), std::nullopt);
}

TEST(SetTable, AKeptHandleIsSubmittedAfterItsRelease) {
  SetTable table(2, false);
  const std::size_t kept = *table.acquire();
  ASSERT_TRUE(table.release(kept).ok());
  ASSERT_TRUE(table.submit(kept, 1).ok());
  EXPECT_EQ(table.figures().available, 1U);
  EXPECT_NE(table.acquire(), kept);
  EXPECT_EQ(table.submit(kept, 2).code(), Code::kBusy);
  table.complete(kept);
  EXPECT_EQ(table.submit(kept, 2).code(), Code::kWrongState) << "its result is there";
  EXPECT_EQ(table.release(kept).code(), Code::kWrongState);
}

TEST(SetTable, ARefusedSubmissionLeavesTheHandleWithItsUser) {
  SetTable table(1, true);
  ASSERT_TRUE(table.submit(*table.acquire(), 3).ok());
  table.refuse(0);
  EXPECT_EQ(table.figures().held, 1U);
  EXPECT_EQ(table.find(3), std::nullopt);
  EXPECT_TRUE(table.release(0).ok());
}

TEST(SetTable, ARefusedSubmissionOfAKeptHandleLeavesItAvailable) {
  SetTable table(2, false);
  const std::size_t kept = *table.acquire();
  ASSERT_TRUE(table.release(kept).ok());
  ASSERT_TRUE(table.submit(kept, 3).ok());
  table.refuse(kept);
  EXPECT_EQ(table.figures().available, 2U);
  EXPECT_EQ(table.release(kept).code(), Code::kWrongState) << "nobody holds it";
  EXPECT_EQ(table.acquire(), kept) << "it was the first to be used";
}

TEST(SetTable, EveryHandleIsInOneStateWhateverHappens) {
  std::mt19937 random(5);
  for (const bool in_order : {false, true}) {
    SetTable table(9, in_order);
    for (int step = 0; step < 20000; ++step) {
      const std::size_t handle = random() % 9;
      switch (random() % 7) {
        case 0:
          (void)table.acquire();
          break;
        case 1:
          (void)table.submit(handle, random() % 4);
          break;
        case 2:
          if (const auto flying = table.all_in_flight(); !flying.empty())
            table.complete(flying[random() % flying.size()]);
          break;
        case 3:
          (void)table.collect();
          break;
        case 4:
          (void)table.collect(random() % 4);
          break;
        case 5:
          if (const auto flying = table.all_in_flight(); !flying.empty())
            table.refuse(flying.back());
          break;
        default:
          (void)table.release(handle);
      }
      ASSERT_EQ(total(table.figures()), 9U);
      const auto flying = table.all_in_flight();
      ASSERT_EQ(table.figures().in_flight, flying.size());
      for (std::size_t i = 0; i < flying.size(); ++i) ASSERT_EQ(table.in_flight(i), flying[i]);
      ASSERT_EQ(table.in_flight(flying.size()), std::nullopt);
    }
  }
}

}  // namespace
}  // namespace corelane::runtime
