#include "dispatch/lone_tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace corelane::dispatch {
namespace {

using std::chrono::milliseconds;

constexpr Duration kTime = milliseconds(1);

/// Runs `n` tasks one after the other, which take `all` on all cores and `one` on one; returns how
/// many took all.
std::size_t run(LoneTasks& tasks, std::size_t n, Duration all, Duration one) {
  std::size_t on_all = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const bool takes_all = tasks.begins(0, 0, 0, kTime);
    on_all += takes_all ? 1 : 0;
    tasks.ends(0, true, takes_all ? all : one);
  }
  return on_all;
}

TEST(LoneTasks, AFailureEndsATrialAndTheNextTaskTakesWhatIsInUse) {
  LoneTasks tasks(2);
  run(tasks, LoneWidth::kFirst, kTime, kTime);
  ASSERT_FALSE(tasks.begins(0, 0, 0, kTime)) << "the trial begins with one core";
  tasks.ends(0, false, kTime);
  EXPECT_EQ(run(tasks, LoneWidth::kFirst, kTime, kTime), LoneWidth::kFirst);
}

TEST(LoneTasks, ATaskBesideOneOfATrialEndsItAndTakesAllCores) {
  LoneTasks tasks(2);
  run(tasks, LoneWidth::kFirst, kTime, kTime);
  ASSERT_FALSE(tasks.begins(0, 0, 0, kTime));
  EXPECT_TRUE(tasks.begins(1, 1, 0, kTime));
  tasks.ends(0, true, kTime);
  tasks.ends(1, true, kTime);
  EXPECT_EQ(run(tasks, LoneWidth::kFirst, kTime, kTime), LoneWidth::kFirst);
}

TEST(LoneTasks, ACallerWhoseTasksComeBetweenTheTwoTimesKeepsAllCores) {
  constexpr Duration kOnAll = milliseconds(15);
  constexpr Duration kOnOne = milliseconds(25);
  constexpr Duration kPeriod = milliseconds(20);
  struct Running {
    std::size_t context;
    TimePoint end;
    Duration time;
  };
  LoneTasks tasks(2);
  std::vector<Running> running;
  std::size_t on_all = 0;
  constexpr std::size_t kTasks = 2000;
  TimePoint now{};
  for (std::size_t i = 0; i < kTasks; ++i, now += kPeriod) {
    std::erase_if(running, [&](const Running& r) {
      if (r.end > now) return false;
      tasks.ends(r.context, true, r.time);
      return true;
    });
    // A job on all cores waits for those that run.
    const bool all = tasks.begins(i % 2, running.size(), 0, kOnAll);
    on_all += all ? 1 : 0;
    TimePoint start = now;
    for (const Running& r : running)
      if (all) start = std::max(start, r.end);
    running.push_back({i % 2, start + (all ? kOnAll : kOnOne), all ? kOnAll : kOnOne});
  }
  EXPECT_GT(on_all, kTasks - 10);
}

TEST(LoneTasks, TasksThatOverlapTakeOneCoreUntilSomeWereAlone) {
  LoneTasks tasks(2);
  EXPECT_TRUE(tasks.begins(0, 0, 0, kTime));
  EXPECT_FALSE(tasks.begins(1, 1, 0, kTime));
  tasks.ends(0, true, kTime);
  tasks.ends(1, true, kTime);
  EXPECT_EQ(run(tasks, AloneInARow::kEnough, kTime, kTime), 1U);
}

}  // namespace
}  // namespace corelane::dispatch
