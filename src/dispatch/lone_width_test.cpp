#include "dispatch/lone_width.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>

namespace corelane::dispatch {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kShort = milliseconds(1);
/// Tasks of a trial.
constexpr std::size_t kTrial = 2 * LoneWidth::kPairs;

/// Tasks that are alone, one after the other.
struct Tasks {
  LoneWidth width;
  /// What a task takes on all cores, and on one.
  std::function<Duration(bool)> time;

  /// How many of `n` tasks took all cores.
  std::size_t run(std::size_t n) {
    std::size_t on_all = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const bool all = width.takes_all_cores(kShort);
      on_all += all ? 1 : 0;
      width.ran_alone(time(all));
    }
    return on_all;
  }
  void try_both() { run(LoneWidth::kMost + LoneWidth::kFirst + 2 * kTrial); }
};

Duration quicker_on_one(bool all) { return all ? microseconds(800) : microseconds(500); }
Duration quicker_on_all(bool all) { return all ? microseconds(500) : microseconds(800); }

TEST(LoneWidth, TasksThatAreQuickerOnOneCoreGetOne) {
  Tasks tasks{{}, quicker_on_one};
  EXPECT_EQ(tasks.run(LoneWidth::kFirst), LoneWidth::kFirst) << "nothing was tried yet";
  tasks.run(kTrial);
  EXPECT_EQ(tasks.run(LoneWidth::kFirst), LoneWidth::kFirst) << "a second trial has to agree";
  tasks.run(kTrial);
  EXPECT_EQ(tasks.run(LoneWidth::kFirst), 0U);
}

TEST(LoneWidth, TasksThatAreQuickerOnAllCoresKeepThem) {
  Tasks tasks{{}, quicker_on_all};
  tasks.run(LoneWidth::kFirst + kTrial);
  EXPECT_EQ(tasks.run(LoneWidth::kFirst), LoneWidth::kFirst);
}

TEST(LoneWidth, WhatIsInUseGoesOnWhereTheTwoAreAlike) {
  Tasks tasks{{}, [](bool all) { return all ? microseconds(515) : microseconds(500); }};
  tasks.try_both();
  EXPECT_EQ(tasks.run(10), 10U);
  tasks.time = quicker_on_one;
  tasks.try_both();
  EXPECT_EQ(tasks.run(10), 0U);
  tasks.time = [](bool all) { return all ? microseconds(500) : microseconds(515); };
  tasks.try_both();
  EXPECT_EQ(tasks.run(10), 0U);
}

TEST(LoneWidth, ItIsTriedAgainSinceProgramsChange) {
  Tasks tasks{{}, quicker_on_one};
  tasks.try_both();
  EXPECT_EQ(tasks.run(10), 0U);
  tasks.time = quicker_on_all;
  tasks.try_both();
  EXPECT_EQ(tasks.run(10), 10U);
}

TEST(LoneWidth, OneTrialThatWasDisturbedDoesNotDecide) {
  std::size_t n = 0;
  Tasks tasks{{}, [&](bool all) {
                return ++n <= LoneWidth::kFirst + kTrial ? quicker_on_one(all)
                                                         : quicker_on_all(all);
              }};
  tasks.run(2 * (LoneWidth::kFirst + kTrial));
  EXPECT_EQ(tasks.run(10), 10U);
}

TEST(LoneWidth, FewTimesThatStandOutDoNotDecide) {
  std::size_t n = 0;
  Tasks tasks{{}, [&](bool all) {
                const bool late = !all && ++n % 3 == 0;  // The first pair's does not count.
                return late ? Duration(milliseconds(50)) : quicker_on_one(all);
              }};
  tasks.run(2 * (LoneWidth::kFirst + kTrial));
  EXPECT_EQ(tasks.run(10), 0U);
}

TEST(LoneWidth, ATaskThatWasNotAloneIsTriedAgain) {
  LoneWidth width;
  for (std::uint32_t i = 0; i < LoneWidth::kFirst; ++i) width.takes_all_cores(kShort);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(width.takes_all_cores(kShort));
  width.ran_alone(kShort);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(width.takes_all_cores(kShort));
}

TEST(LoneWidth, LongTasksAreNotTried) {
  LoneWidth width;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(width.takes_all_cores(milliseconds(31)));
    width.ran_alone(milliseconds(31));
  }
}

TEST(LoneWidth, ALongTaskWithinATrialIsNotPartOfIt) {
  Tasks tasks{{}, quicker_on_one};
  tasks.run(LoneWidth::kFirst);
  for (std::size_t i = 0; i < kTrial; ++i) {
    EXPECT_TRUE(tasks.width.takes_all_cores(milliseconds(31)));
    tasks.width.ran_alone(i % 2 == 0 ? milliseconds(1) : milliseconds(90));
    tasks.run(1);
  }
  tasks.run(LoneWidth::kFirst + kTrial);
  EXPECT_EQ(tasks.run(10), 0U);
}

TEST(LoneWidth, TimesOfZeroAreTimes) {
  Tasks tasks{{}, [](bool) { return Duration{0}; }};
  tasks.try_both();
  EXPECT_EQ(tasks.run(10), 10U);
}

}  // namespace
}  // namespace corelane::dispatch
