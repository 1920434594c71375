// Tables of what a session decides: no thread, no device, no clock.
#include "session/tasks/task_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corelane/session/session.h"
#include "session/tasks/session_task.h"

namespace corelane::session {
namespace {

using dispatch::Admission;
using std::chrono::milliseconds;
using ::testing::ElementsAre;

constexpr std::size_t kDeviceCores = 3;

TimePoint at(int ms) { return TimePoint{} + milliseconds(ms); }

SessionOptions options_of(std::vector<std::size_t> schedule, PlacementPolicy placement) {
  SessionOptions options;
  options.schedule = std::move(schedule);
  options.placement = placement;
  options.max_queue_size = 8;
  return options;
}

/// One context for each core of the schedule.
TaskQueue queue_of(const SessionOptions& options, bool joins_cores = false) {
  std::vector<std::int32_t> contexts;
  for (const std::size_t core : dispatch::unique_cores(options.schedule))
    contexts.push_back(static_cast<std::int32_t>(core));
  return {options, std::move(contexts), kDeviceCores, joins_cores};
}

std::shared_ptr<SessionTask> accept(TaskQueue& queue, TimePoint now = at(0)) {
  auto task = std::make_shared<SessionTask>();
  queue.accept(task, now);
  return task;
}

/// The contexts of what starts now, in order.
std::vector<std::size_t> starts(TaskQueue& queue) {
  std::vector<std::size_t> contexts;
  while (auto next = queue.start_next()) contexts.push_back(next->context);
  return contexts;
}

Admission admit(TaskQueue& queue, TimePoint deadline, TimePoint now) {
  Entrance entrance;
  entrance.deadline = deadline;
  return queue.admit(entrance, now).what;
}

/// What a device and a receiver do after submitted().
void complete(TaskQueue& queue, SessionTask& task, std::size_t context, const Status& status = {}) {
  queue.complete(task, status, true);
  queue.release(context, status, milliseconds(1));
  queue.delivered(1);
}

TEST(TaskQueue, ByFormulaATaskWaitsForItsOwnCore) {
  TaskQueue queue = queue_of(options_of({0, 1, 0, 2}, PlacementPolicy::kFormula));
  for (int i = 0; i < 4; ++i) accept(queue);
  EXPECT_THAT(starts(queue), ElementsAre(0, 1, 2));  // Task 2 wants core 0, task 3 core 2.
  queue.release(1, {}, milliseconds(1));
  EXPECT_THAT(starts(queue), ElementsAre());
  queue.release(0, {}, milliseconds(1));
  EXPECT_THAT(starts(queue), ElementsAre(0));
}

TEST(TaskQueue, LeastLoadedTakesAnyIdleContextInOrderOfNumbers) {
  TaskQueue queue = queue_of(options_of({0, 1, 0, 2}, PlacementPolicy::kLeastLoaded));
  std::vector<std::shared_ptr<SessionTask>> tasks;
  for (int i = 0; i < 4; ++i) tasks.push_back(accept(queue));
  EXPECT_THAT(starts(queue), ElementsAre(0, 1, 2));
  queue.release(1, {}, milliseconds(1));
  const auto last = queue.start_next();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->task, tasks[3]);
  EXPECT_EQ(last->context, 1U);
}

TEST(TaskQueue, NoTaskOfALanePassesOneThatAwaitsRoom) {
  TaskQueue queue = queue_of(options_of({0, 1, 0, 1}, PlacementPolicy::kFormula));
  const auto first = accept(queue);
  ASSERT_TRUE(queue.start_next());
  queue.await_room(first->lane);
  for (int i = 1; i < 4; ++i) accept(queue);
  EXPECT_THAT(starts(queue), ElementsAre(1)) << "of the other lane";
  queue.release(0, {}, milliseconds(1));
  EXPECT_THAT(starts(queue), ElementsAre());
  queue.room_found(first->lane);
  EXPECT_THAT(starts(queue), ElementsAre(0));
}

TEST(TaskQueue, ATaskThatIsAloneTakesAllCoresOnlyWhenItIsWorthIt) {
  TaskQueue queue = queue_of(options_of({0, 1, 2}, PlacementPolicy::kAdaptive), true);
  for (const bool all : {false, true, true}) {  // Nothing is known of the first one's time.
    const auto task = accept(queue);
    const auto start = queue.start_next();
    ASSERT_TRUE(start);
    EXPECT_EQ(start->all_cores, all);
    queue.submitted(*task);
    complete(queue, *task, start->context);
  }
  accept(queue);
  accept(queue);
  EXPECT_FALSE(queue.start_next()->all_cores);  // The other one waits.
}

/// Runs `n` tasks one after the other, which take 6 ms on all cores and 3 ms on one, longer than
/// those that are warmed up; returns how many of them took all.
std::size_t run_alone(TaskQueue& queue, std::size_t n) {
  std::size_t on_all = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto start = queue.start_in_place(at(0));
    on_all += start->all_cores ? 1 : 0;
    queue.release(start->context, {}, milliseconds(start->all_cores ? 6 : 3));
    queue.complete_in_place({});
  }
  return on_all;
}

/// Of the first task's time nothing is known.
constexpr std::size_t kUntilTrial = 1 + dispatch::LoneWidth::kFirst;
constexpr std::size_t kUntilTried =
    kUntilTrial + dispatch::LoneWidth::kFirst + 4 * dispatch::LoneWidth::kPairs;

TEST(TaskQueue, TasksThatAreAloneGetOneCoreWhereThatIsQuicker) {
  TaskQueue queue = queue_of(options_of({0, 1, 2}, PlacementPolicy::kAdaptive), true);
  EXPECT_EQ(run_alone(queue, kUntilTrial), kUntilTrial - 1);
  run_alone(queue, kUntilTried - kUntilTrial);
  EXPECT_EQ(run_alone(queue, 20), 0U);
}

TEST(TaskQueue, AFailureOnOneCoreIsNotRepeatedThere) {
  TaskQueue queue = queue_of(options_of({0, 1, 2}, PlacementPolicy::kAdaptive), true);
  run_alone(queue, kUntilTrial);
  const auto tried = queue.start_in_place(at(0));
  ASSERT_FALSE(tried->all_cores);
  queue.release(tried->context, error(Code::kTimeout, "by the device"), milliseconds(9));
  queue.complete_in_place({});
  EXPECT_EQ(run_alone(queue, 20), 20U);
}

TEST(TaskQueue, TasksThatAreAloneKeepTheirContextWhereTheyMayTakeAllCores) {
  TaskQueue queue = queue_of(options_of({0, 1, 2}, PlacementPolicy::kAdaptive), true);
  for (int i = 0; i < 5; ++i) {
    const auto start = queue.start_in_place(at(0));
    EXPECT_EQ(start->context, 0U);
    queue.release(start->context, {}, milliseconds(1));
    queue.complete_in_place({});
  }
}

TEST(TaskQueue, TheWaitForCoresCountsWhereOneCoreAndAllAreCompared) {
  TaskQueue queue = queue_of(options_of({0, 1, 2}, PlacementPolicy::kAdaptive), true);
  std::size_t on_all = 0;
  for (std::size_t i = 0; i < kUntilTried + 20; ++i) {
    const auto start = queue.start_in_place(at(0));
    on_all += i >= kUntilTried && start->all_cores ? 1 : 0;
    queue.release(start->context, {}, milliseconds(3), milliseconds(start->all_cores ? 3 : 0));
    queue.complete_in_place({});
  }
  EXPECT_EQ(on_all, 0U);
}

TEST(TaskQueue, ACallRunsInPlaceOnlyWhereItWouldNotWait) {
  SessionOptions options = options_of({0}, PlacementPolicy::kFormula);
  options.max_pending_callbacks = 1;
  TaskQueue queue = queue_of(options);
  const auto first = queue.start_in_place(at(0));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->id, 0U);
  EXPECT_FALSE(queue.start_in_place(at(0))) << "the context is taken";
  queue.release(first->context, {}, milliseconds(1));
  queue.complete_in_place({});
  EXPECT_TRUE(queue.quiet());
  queue.callback_pending();
  EXPECT_FALSE(queue.start_in_place(at(0))) << "a callback is pending";
  queue.callback_returned();
  accept(queue);
  EXPECT_FALSE(queue.start_in_place(at(0))) << "a task waits";
  EXPECT_THAT(starts(queue), ElementsAre(0));
  queue.release(0, {}, milliseconds(1));
  queue.close();
  EXPECT_FALSE(queue.start_in_place(at(0))) << "the session is closed";
}

TEST(TaskQueue, AFullQueueRefusesAtTheDeadlineAndCountsIt) {
  SessionOptions options = options_of({0}, PlacementPolicy::kFormula);
  options.max_queue_size = 1;
  TaskQueue queue = queue_of(options);
  accept(queue);
  EXPECT_FALSE(queue.has_room(false));
  EXPECT_EQ(admit(queue, at(50), at(0)), Admission::kWaitForRoom);
  EXPECT_EQ(admit(queue, at(50), at(50)), Admission::kQueueFull);
  EXPECT_EQ(queue.statistics().rejected, 1U);
  starts(queue);
  EXPECT_TRUE(queue.has_room(false));
  EXPECT_EQ(admit(queue, at(50), at(50)), Admission::kEnter);
}

TEST(TaskQueue, PacingCountsACallThatItHoldsUpOnce) {
  SessionOptions options = options_of({0}, PlacementPolicy::kFormula);
  options.enable_pacing = true;
  TaskQueue queue = queue_of(options);
  const auto first = queue.start_in_place(at(0));
  queue.release(first->context, {}, milliseconds(10));
  queue.complete_in_place({});
  Entrance entrance;
  entrance.deadline = at(50);
  EXPECT_EQ(queue.admit(entrance, at(1)).what, Admission::kWaitForPace);
  EXPECT_EQ(queue.admit(entrance, at(2)).what, Admission::kWaitForPace);
  EXPECT_EQ(queue.admit(entrance, at(10)).what, Admission::kEnter);
  EXPECT_EQ(queue.statistics().paced, 1U);
}

TEST(TaskQueue, CancelAnswersByTheState) {
  TaskQueue queue = queue_of(options_of({0}, PlacementPolicy::kFormula));
  SessionTask entering;
  EXPECT_EQ(queue.cancel(entering), Cancellation::kRefused);
  EXPECT_EQ(entering.progress.state(), TaskState::kRefused);

  const auto task = accept(queue);
  const auto waiting = accept(queue);
  ASSERT_TRUE(queue.start_next());
  EXPECT_EQ(queue.cancel(*waiting), Cancellation::kWithdrawn);
  EXPECT_EQ(queue.cancel(*waiting), Cancellation::kTooLate);
  EXPECT_EQ(queue.statistics().waiting, 0U);
  EXPECT_EQ(queue.statistics().cancelled, 1U);

  EXPECT_EQ(queue.cancel(*task), Cancellation::kStopping);
  EXPECT_FALSE(queue.submitted(*task)) << "it was cancelled while it was starting";
  EXPECT_EQ(queue.cancel(*task), Cancellation::kStopping);
  queue.complete(*task, error(Code::kCancelled, "by the device"), false);
  EXPECT_EQ(queue.cancel(*task), Cancellation::kTooLate);
  EXPECT_EQ(queue.statistics().cancelled, 2U);
  EXPECT_EQ(queue.statistics().failed, 2U);

  queue.release(0, {}, milliseconds(1));
  const auto running = accept(queue);
  ASSERT_TRUE(queue.start_next());
  EXPECT_TRUE(queue.submitted(*running));
  EXPECT_EQ(queue.cancel(*running), Cancellation::kRunning);
}

TEST(TaskQueue, OnlyAWaitingTaskCanBeWithdrawn) {
  TaskQueue queue = queue_of(options_of({0}, PlacementPolicy::kFormula));
  const auto task = accept(queue);
  const auto other = accept(queue);
  ASSERT_TRUE(queue.start_next());
  EXPECT_FALSE(queue.withdraw(*task));
  EXPECT_THAT(queue.withdraw_all(), ElementsAre(other));
  EXPECT_EQ(other->progress.state(), TaskState::kDone);
}

TEST(TaskQueue, ASampleKeepsTheDeadlineOfItsBatch) {
  TaskQueue queue = queue_of(options_of({0}, PlacementPolicy::kFormula));
  auto first = std::make_shared<SessionTask>();
  first->timeout = milliseconds(20);
  queue.accept(first, at(5));
  EXPECT_EQ(first->deadline, at(25));
  auto second = std::make_shared<SessionTask>();
  second->timeout = milliseconds(20);
  second->deadline = first->deadline;
  queue.accept(second, at(15));
  EXPECT_EQ(second->deadline, at(25));
}

TEST(TaskQueue, ItIsQuietWhenAllIsDeliveredAndNoCallbackIsPending) {
  TaskQueue queue = queue_of(options_of({0}, PlacementPolicy::kFormula));
  EXPECT_TRUE(queue.quiet());
  const auto task = accept(queue);
  const auto start = queue.start_next();
  EXPECT_TRUE(queue.submitted(*task));
  queue.complete(*task, {}, true);
  queue.release(start->context, {}, milliseconds(1));
  EXPECT_FALSE(queue.quiet());
  queue.callback_pending();
  queue.delivered(1);
  EXPECT_FALSE(queue.quiet());
  queue.callback_returned();
  EXPECT_TRUE(queue.quiet());
}

}  // namespace
}  // namespace corelane::session
