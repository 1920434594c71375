#include "cli/top/core_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace corelane::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

WatchedCore core(std::size_t index, const std::string& process, Duration busy, std::uint64_t jobs,
                 std::uint64_t waiting = 0, const std::string& set = "net") {
  return {
      "npu", index,
      device::Lease::Holder{index, process, "app", device::LeaseFigures{busy, jobs, waiting, set}}};
}

TEST(CoreRows, ShareAndRateAreOfTheTimeBetweenTheLooks) {
  const CoreLook before{TimePoint(seconds(10)), {core(0, "7", seconds(3), 100)}};
  const CoreLook now{TimePoint(seconds(12)), {core(0, "7", milliseconds(3500), 140, 5)}};
  const auto rows = core_rows(before, now);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_DOUBLE_EQ(rows[0].busy.value(), 0.25);
  EXPECT_DOUBLE_EQ(rows[0].rate.value(), 20);
  EXPECT_EQ(rows[0].jobs, 140U);
  EXPECT_EQ(rows[0].waiting, 5U);
  EXPECT_EQ(rows[0].set, "net");
}

TEST(CoreRows, AnotherHolderHasNoShareYet) {
  const CoreLook before{TimePoint(seconds(1)), {core(0, "7", seconds(3), 100)}};
  const CoreLook now{TimePoint(seconds(2)), {core(0, "8", seconds(4), 200)}};
  const auto rows = core_rows(before, now);
  EXPECT_FALSE(rows[0].busy);
  EXPECT_EQ(rows[0].jobs, 200U);
  // The number of a process that ended may come again: its figures go back.
  const auto again = core_rows(now, {TimePoint(seconds(3)), {core(0, "8", seconds(1), 5)}});
  EXPECT_FALSE(again[0].busy);
}

TEST(CoreRows, WhatAHolderClaimsIsAShareAtMost) {
  const CoreLook before{TimePoint(seconds(1)), {core(0, "7", Duration{0}, 0)}};
  const CoreLook now{TimePoint(seconds(2)), {core(0, "7", seconds(1000), 1)}};
  EXPECT_DOUBLE_EQ(core_rows(before, now)[0].busy.value(), 1.0);
}

TEST(CoreRows, ACoreThatNobodyHasIsARowOfItsOwn) {
  const CoreLook now{TimePoint(seconds(2)), {{"npu", 3, std::nullopt}}};
  const auto rows = core_rows(now, now);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].core, 3U);
  EXPECT_TRUE(rows[0].process.empty());
  EXPECT_THAT(watch_table(rows), HasSubstr("no core is held"));
  EXPECT_THAT(watch_table(rows), HasSubstr("programs\n"));
}

TEST(SetRows, CoresOfOneProcessAndProgramAreTogether) {
  const CoreLook before{TimePoint(seconds(0)),
                        {core(0, "7", Duration{0}, 0), core(1, "7", Duration{0}, 0),
                         core(2, "9", Duration{0}, 0, 0, "other")}};
  const CoreLook now{
      TimePoint(seconds(1)),
      {core(0, "7", milliseconds(200), 10, 4), core(1, "7", milliseconds(600), 30, 4),
       core(2, "9", milliseconds(100), 1, 0, "other")}};
  const auto sets = set_rows(core_rows(before, now));
  ASSERT_EQ(sets.size(), 2U);
  EXPECT_THAT(sets[0].cores, testing::ElementsAre(0, 1));
  EXPECT_DOUBLE_EQ(sets[0].busy.value(), 0.4);
  EXPECT_DOUBLE_EQ(sets[0].rate.value(), 40);
  EXPECT_EQ(sets[0].waiting, 4U);
  EXPECT_EQ(sets[1].set, "other");
}

TEST(WatchTable, NamesOfOthersAreWrittenOut) {
  auto bad = core(0, "7", Duration{0}, 0, 0, "a\x1b[2J\nb");
  bad.holder->program = "x\x1b";
  const std::string text = watch_table(core_rows({}, {TimePoint(seconds(1)), {bad}}));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_THAT(text, HasSubstr("a\\x1b[2J\\nb"));
}

TEST(CoreWatch, RoundsFollowThePeriodOfTheClock) {
  const auto clock = std::make_shared<VirtualClock>();
  std::vector<TimePoint> shown;
  CoreWatch watch(clock, {.look = [&]() -> Result<std::vector<WatchedCore>> {
                            return std::vector{core(0, "7", clock->now().time_since_epoch(), 1)};
                          },
                          .show =
                              [&](const std::vector<CoreRow>& rows, Duration between) {
                                EXPECT_EQ(between, seconds(1));
                                EXPECT_DOUBLE_EQ(rows[0].busy.value(), 1.0);
                                shown.push_back(clock->now());
                              },
                          .stop = [] { return false; },
                          .sleep = [&](TimePoint until) { clock->advance_to(until); }});
  EXPECT_TRUE(watch.run(3, seconds(1)).ok());
  EXPECT_THAT(shown, testing::ElementsAre(TimePoint(seconds(1)), TimePoint(seconds(2)),
                                          TimePoint(seconds(3))));
}

TEST(CoreWatch, AStopEndsItBeforeThePeriodDoes) {
  const auto clock = std::make_shared<VirtualClock>();
  std::size_t shown = 0;
  CoreWatch watch(clock, {.look = [] { return Result<std::vector<WatchedCore>>(); },
                          .show = [&](const auto&, Duration) { ++shown; },
                          .stop = [&] { return clock->now() >= TimePoint(milliseconds(2500)); },
                          .sleep = [&](TimePoint until) { clock->advance_to(until); }});
  EXPECT_TRUE(watch.run(0, seconds(1)).ok());
  EXPECT_EQ(shown, 2U);
  EXPECT_LT(clock->now(), TimePoint(milliseconds(2600)));
}

TEST(CoreWatch, ALookThatFailsEndsIt) {
  CoreWatch watch(
      std::make_shared<VirtualClock>(),
      {.look = []() -> Result<std::vector<WatchedCore>> { return error(Code::kIo, "no folder"); },
       .show = [](const auto&, Duration) {},
       .stop = [] { return false; },
       .sleep = [](TimePoint) {}});
  EXPECT_EQ(watch.run(1, seconds(1)).code(), Code::kIo);
}

}  // namespace
}  // namespace corelane::cli
