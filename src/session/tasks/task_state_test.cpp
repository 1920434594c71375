#include "session/tasks/task_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace corelane::session {
namespace {

using enum TaskState;

constexpr TaskState kAll[] = {kEntering, kRefused, kWaiting, kStarting, kStopping, kRunning, kDone};

TEST(TaskState, TheTableAllowsTheseStepsAndNoOthers) {
  const std::vector<std::pair<TaskState, TaskState>> allowed = {
      {kEntering, kWaiting}, {kEntering, kRefused}, {kWaiting, kStarting},
      {kWaiting, kDone},     {kStarting, kRunning}, {kStarting, kStopping},
      {kStarting, kDone},    {kStopping, kDone},    {kRunning, kDone}};
  for (const TaskState from : kAll) {
    for (const TaskState to : kAll) {
      const bool listed = std::count(allowed.begin(), allowed.end(), std::pair(from, to)) == 1;
      EXPECT_EQ(may_follow(from, to), listed) << static_cast<int>(from) << static_cast<int>(to);
    }
  }
}

#if !defined(NDEBUG) || defined(CORELANE_CHECK_LOCKS)
TEST(TaskStateDeathTest, AStepThatTheTableDoesNotAllowEndsACheckingBuild) {
  TaskProgress task;
  task.move_to(kWaiting);
  EXPECT_DEATH(task.move_to(kRunning), "from state 2 to 5");
}
#endif

}  // namespace
}  // namespace corelane::session
