#include "dispatch/lone_width.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <tuple>

namespace corelane::dispatch {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kAverage = milliseconds(3);
/// Tasks of a trial.
constexpr std::size_t kTrial = 2 * LoneWidth::kPairs;

/// Tasks that are alone, one after the other.
struct Tasks {
  LoneWidth width{2};
  /// What a task takes on all cores, and on one.
  std::function<Duration(bool)> time;

  /// How many of `n` tasks took all cores.
  std::size_t run(std::size_t n) {
    std::size_t on_all = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const bool all = width.takes_all_cores(average);
      on_all += all ? 1 : 0;
      width.ran_alone(time(all));
    }
    return on_all;
  }
  void try_both() { run(LoneWidth::kMost + LoneWidth::kFirst + 4 * kTrial); }
  Duration average = kAverage;
};

Duration quicker_on_one(bool all) { return all ? microseconds(800) : microseconds(500); }
Duration quicker_on_all(bool all) { return all ? microseconds(500) : microseconds(800); }

TEST(LoneWidth, TasksThatAreQuickerOnOneCoreGetOne) {
  Tasks tasks{LoneWidth(2), quicker_on_one};
  EXPECT_EQ(tasks.run(LoneWidth::kFirst), LoneWidth::kFirst) << "nothing was tried yet";
  tasks.run(kTrial);
  EXPECT_EQ(tasks.run(LoneWidth::kFirst), LoneWidth::kFirst) << "a second trial has to agree";
  tasks.run(kTrial);
  EXPECT_EQ(tasks.run(LoneWidth::kFirst), 0U);
}

TEST(LoneWidth, TasksThatAreQuickerOnAllCoresKeepThem) {
  Tasks tasks{LoneWidth(2), quicker_on_all};
  tasks.run(LoneWidth::kFirst + kTrial);
  EXPECT_EQ(tasks.run(LoneWidth::kFirst), LoneWidth::kFirst);
}

TEST(LoneWidth, WhatIsInUseGoesOnWhereTheTwoAreAlike) {
  Tasks tasks{LoneWidth(2), [](bool all) { return all ? microseconds(515) : microseconds(500); }};
  tasks.try_both();
  EXPECT_EQ(tasks.run(10), 10U);
  tasks.time = quicker_on_one;
  tasks.try_both();
  EXPECT_EQ(tasks.run(10), 0U);
  tasks.time = [](bool all) { return all ? microseconds(500) : microseconds(515); };
  tasks.try_both();
  EXPECT_EQ(tasks.run(10), 0U);
}

TEST(LoneWidth, WhereTheTwoAreAlikeOneCoreIsEnoughForShortTasks) {
  Tasks tasks{LoneWidth(2), [](bool all) { return all ? microseconds(500) : microseconds(515); }};
  tasks.average = LoneWidth::kShort;
  tasks.try_both();
  EXPECT_EQ(tasks.run(10), 10U) << "one core is a little slower";
  tasks.time = [](bool all) { return all ? microseconds(505) : microseconds(500); };
  tasks.try_both();
  EXPECT_EQ(tasks.run(10), 0U);
  tasks.time = [](bool all) { return all ? microseconds(500) : microseconds(515); };
  tasks.try_both();
  EXPECT_EQ(tasks.run(10), 0U) << "all cores are not much quicker";
  tasks.time = quicker_on_all;
  tasks.try_both();
  EXPECT_EQ(tasks.run(10), 10U);
}

TEST(LoneWidth, ItIsTriedAgainSinceProgramsChange) {
  Tasks tasks{LoneWidth(2), quicker_on_one};
  tasks.try_both();
  EXPECT_EQ(tasks.run(10), 0U);
  tasks.time = quicker_on_all;
  tasks.try_both();
  EXPECT_EQ(tasks.run(10), 10U);
}

TEST(LoneWidth, OneTrialThatWasDisturbedDoesNotDecide) {
  std::size_t n = 0;
  Tasks tasks{LoneWidth(2), [&](bool all) {
                return ++n <= LoneWidth::kFirst + kTrial ? quicker_on_one(all)
                                                         : quicker_on_all(all);
              }};
  tasks.run(2 * (LoneWidth::kFirst + kTrial));
  EXPECT_EQ(tasks.run(10), 10U);
}

TEST(LoneWidth, FewTimesThatStandOutDoNotDecide) {
  std::size_t n = 0;
  Tasks tasks{LoneWidth(2), [&](bool all) {
                const bool late = !all && ++n % 3 == 0;  // The first pair's does not count.
                return late ? Duration(milliseconds(50)) : quicker_on_one(all);
              }};
  tasks.run(2 * (LoneWidth::kFirst + kTrial));
  EXPECT_EQ(tasks.run(10), 0U);
}

TEST(LoneWidth, ATaskThatFailedOrWasNotAloneEndsTheTrial) {
  for (std::size_t steps = 0; steps < kTrial; ++steps) {
    Tasks tasks{LoneWidth(2), quicker_on_one};
    tasks.run(LoneWidth::kFirst + steps);
    tasks.width.takes_all_cores(kAverage);
    tasks.width.gave_up();
    EXPECT_EQ(tasks.run(LoneWidth::kFirst), LoneWidth::kFirst) << steps;
  }
}

TEST(LoneWidth, TasksWhoseSizesAlternateFavourNeither) {
  for (const std::size_t phase : {0, 1}) {
    for (const bool one_is_quicker : {false, true}) {
      std::size_t n = phase;
      Tasks tasks{LoneWidth(2), [&](bool all) {
                    const int size = ++n % 2 == 0 ? 4 : 1;
                    return size * (one_is_quicker ? quicker_on_one(all) : quicker_on_all(all));
                  }};
      tasks.run(2 * (LoneWidth::kFirst + kTrial));
      EXPECT_EQ(tasks.run(10), one_is_quicker ? 0U : 10U) << phase;
    }
  }
}

TEST(LoneWidth, ATrialEndsSoonWhereOneCoreTakesMuchLonger) {
  Tasks tasks{LoneWidth(8), [](bool all) { return all ? microseconds(1000) : microseconds(6000); }};
  tasks.run(LoneWidth::kFirst);
  EXPECT_EQ(tasks.run(8), 4U);
  EXPECT_EQ(tasks.run(LoneWidth::kFirst), LoneWidth::kFirst);
}

TEST(LoneWidth, TheMoreCoresTheShorterAreTheTasksThatAreTried) {
  for (const auto& [cores, tried, not_tried] : {std::tuple{2, milliseconds(30), milliseconds(31)},
                                                std::tuple{8, milliseconds(7), milliseconds(8)}}) {
    LoneWidth width(static_cast<std::size_t>(cores));
    for (std::uint32_t i = 0; i < 2 * LoneWidth::kFirst; ++i)
      EXPECT_TRUE(width.takes_all_cores(not_tried));
    for (std::uint32_t i = 0; i < LoneWidth::kFirst; ++i) width.takes_all_cores(tried);
    EXPECT_FALSE(width.takes_all_cores(tried)) << cores;
  }
}

TEST(LoneWidth, ALongTaskWithinATrialIsNotPartOfIt) {
  Tasks tasks{LoneWidth(2), quicker_on_one};
  tasks.run(LoneWidth::kFirst);
  for (std::size_t i = 0; i < kTrial; ++i) {
    EXPECT_TRUE(tasks.width.takes_all_cores(milliseconds(31)));
    tasks.width.ran_alone(i % 2 == 0 ? milliseconds(1) : milliseconds(90));
    tasks.run(1);
  }
  tasks.run(LoneWidth::kFirst + kTrial);
  EXPECT_EQ(tasks.run(10), 0U);
}

/// Each way has weights of its own, which the other way drives from the caches.
TEST(LoneWidth, ShortTasksAreTimedAfterOneThatWentTheSameWay) {
  LoneWidth width(2);
  std::optional<bool> before;
  const auto run = [&](std::size_t n) {
    std::size_t on_all = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const bool all = width.takes_all_cores(LoneWidth::kShort);
      on_all += all ? 1 : 0;
      const bool cold = before && *before != all;
      // Cold, one core is the slower one.
      width.ran_alone(all ? microseconds(200) : microseconds(cold ? 300 : 160));
      before = all;
    }
    return on_all;
  };
  EXPECT_EQ(run(LoneWidth::kFirst), LoneWidth::kFirst);
  EXPECT_EQ(run(2 * kTrial), kTrial) << "twice as many, of which half counts";
  run(LoneWidth::kFirst + 2 * kTrial);
  EXPECT_EQ(run(LoneWidth::kFirst), 0U);
}

TEST(LoneWidth, AShortTaskThatFailsEndsTheTrialBeforeItCounts) {
  LoneWidth width(2);
  for (std::uint32_t i = 0; i < LoneWidth::kFirst; ++i) width.takes_all_cores(LoneWidth::kShort);
  EXPECT_FALSE(width.takes_all_cores(LoneWidth::kShort));
  EXPECT_TRUE(width.tries_one());
  width.gave_up();
  EXPECT_TRUE(width.takes_all_cores(LoneWidth::kShort));
  EXPECT_FALSE(width.tries_one());
}

TEST(LoneWidth, TimesOfZeroAreTimes) {
  Tasks tasks{LoneWidth(2), [](bool) { return Duration{0}; }};
  tasks.try_both();
  EXPECT_EQ(tasks.run(10), 10U);
}

}  // namespace
}  // namespace corelane::dispatch
