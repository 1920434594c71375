// Who runs what next, without threads: a test plays the engine and the clock.
#include "lanes/lane_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanes/aftermath.h"
#include "lanes/lane_job.h"
#include "lanes/laned_bindings.h"
#include "lanes/laned_device.h"
#include "lanes/laned_executable.h"
#include "lanes/testing/lane_engine_fake.h"

namespace corelane::lanes {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

TimePoint at(int ms) { return TimePoint{} + milliseconds(ms); }

/// A table, and jobs for it that no scheduler knows.
struct Bench {
  explicit Bench(std::size_t cores = 3, bool event_driven = false, bool joins = true,
                 std::size_t depth_limit = 0)
      : fake(cores), table(cores, event_driven, joins, depth_limit) {}

  std::shared_ptr<LanedJob> job(device::CoreSet cores = {}, int priority = 0,
                                TimePoint deadline = kNever) {
    device::Submission submission = fake.job(cores);
    submission.executable = executable;
    submission.bindings = *executable->new_bindings();
    submission.priority = priority;
    submission.deadline = deadline;
    submission.wait = waits;
    auto bindings = std::static_pointer_cast<LanedBindings>(submission.bindings);
    EXPECT_TRUE(bindings->acquire());
    return std::make_shared<LanedJob>(static_cast<LanedDevice&>(*fake.device).scheduler(), queue,
                                      std::move(bindings), submission);
  }
  std::shared_ptr<LanedJob> submit(device::CoreSet cores = {}, int priority = 0,
                                   TimePoint deadline = kNever) {
    auto made = job(cores, priority, deadline);
    EXPECT_TRUE(table.submit(made, false, now, after).ok());
    return made;
  }
  /// The ids of the jobs that start now, in order.
  std::vector<std::uint64_t> run_all() {
    std::vector<std::uint64_t> ids;
    while (auto job = table.run_next(now)) {
      ids.push_back(job->id);
      running.push_back(std::move(job));
    }
    return ids;
  }
  void returns(LanedJob& job, Outcome outcome = {}) {
    table.returned(job, std::move(outcome), now, after);
  }
  static Outcome lost() { return {error(Code::kDeviceLost, "lost"), true, true}; }

  /// The executable of the jobs to come has these cores exclusively.
  std::uint64_t own(std::uint64_t core_bits) {
    const auto* owner = static_cast<const LanedExecutable*>(executable.get());
    const auto held = table.hold_cores(owner, core_bits, device::Residency::kExclusive, now, after);
    EXPECT_TRUE(held.has_value());
    return held.value_or(0);
  }

  FakeDevice fake;
  std::shared_ptr<device::Executable> executable = fake.executable;  ///< Of the jobs to come.
  const std::shared_ptr<device::Executable> other = *fake.device->prepare({}, {});
  LaneTable table;
  std::shared_ptr<QueueAccount> queue = std::make_shared<QueueAccount>();
  std::vector<std::shared_ptr<device::Fence>> waits;
  std::vector<std::shared_ptr<LanedJob>> running;
  TimePoint now = at(1);
  Aftermath after;
};

TEST(LaneTable, WhatIsSubmittedRunsInThisOrder) {
  struct Case {
    const char* what;
    std::vector<std::pair<device::CoreSet, int>> jobs;  ///< Cores and priority, on three cores.
    std::vector<std::uint64_t> first;                   ///< Ids of those that start at once.
    std::vector<std::uint64_t> next;                    ///< Of those that start when 1 returns.
  };
  const auto any = device::CoreSet::any();
  const auto core = [](std::size_t index) { return device::CoreSet::of({index}); };
  const auto all = device::CoreSet::first(3);
  const std::vector<Case> cases = {
      {"any core, in order", {{any, 0}, {any, 0}, {any, 0}, {any, 0}}, {1, 2, 3}, {4}},
      {"higher priority first", {{all, 0}, {any, 0}, {any, 5}}, {1}, {3, 2}},
      {"one core", {{core(0), 0}, {core(0), 0}, {core(1), 0}}, {1, 3}, {2}},
      {"all cores together", {{core(0), 0}, {all, 0}, {core(2), 0}}, {1}, {2}},
      {"two of any", {{core(0), 0}, {device::CoreSet::any(2), 0}}, {1, 2}, {}},
  };
  for (const Case& c : cases) {
    Bench bench;
    for (const auto& [cores, priority] : c.jobs) bench.submit(cores, priority);
    EXPECT_EQ(bench.run_all(), c.first) << c.what;
    bench.returns(*bench.running.front());
    EXPECT_EQ(bench.run_all(), c.next) << c.what;
  }
}

TEST(LaneTable, ThePlatformsChoiceIsAllCoresOrOneWhereTheyAreNotJoined) {
  for (const bool joins : {true, false}) {
    Bench h(3, false, joins);
    const auto job = h.submit(device::CoreSet::platform());
    EXPECT_EQ(job->core_bits, joins ? 7U : 1U);
    const auto next = h.submit(device::CoreSet::platform());
    EXPECT_EQ(next->core_bits, joins ? 0U : 2U) << "it waits for all";
    h.run_all();
    h.returns(*job);
    if (joins) EXPECT_EQ(next->core_bits, 7U);
  }
}

TEST(LaneTable, JobOnSeveralCoresReservesThemThoughItsExecutableHasOneExclusively) {
  const auto pair = device::CoreSet::of({1, 2});
  for (const auto& arbiter : {device::fifo_arbiter(), device::fair_arbiter()}) {
    for (const auto& wanted :
         {pair, device::CoreSet::first(3), device::CoreSet::platform(), device::CoreSet::any(3)}) {
      Bench bench;
      auto given = arbiter;
      bench.table.swap_arbiter(given, bench.now, bench.after);
      bench.own(1);
      bench.executable = bench.other;
      for (int i = 0; i < 3; ++i) bench.submit(device::CoreSet::any_of(pair));
      EXPECT_THAT(bench.run_all(), ElementsAre(1, 2));
      bench.executable = bench.fake.executable;
      bench.submit(wanted);
      bench.executable = bench.other;
      bench.submit();
      // The third is before it, the fifth after it.
      bench.returns(*bench.running[0]);
      EXPECT_THAT(bench.run_all(), ElementsAre(3)) << wanted.to_string();
      bench.returns(*bench.running[1]);
      EXPECT_TRUE(bench.run_all().empty()) << wanted.to_string();
      bench.returns(*bench.running[2]);
      EXPECT_THAT(bench.run_all(), ElementsAre(4)) << wanted.to_string();
    }
  }
}

TEST(LaneTable, ReservationsOfOthersHoldForTheOwnerOfACore) {
  Bench bench;
  bench.own(1);
  for (int i = 0; i < 3; ++i) bench.submit();
  EXPECT_THAT(bench.run_all(), ElementsAre(1, 2, 3));
  bench.executable = bench.other;
  bench.submit(device::CoreSet::platform());
  bench.executable = bench.fake.executable;
  bench.submit();
  bench.submit();
  bench.returns(*bench.running[1]);
  EXPECT_TRUE(bench.run_all().empty()) << "its core is kept for the job that waits for two";
  bench.returns(*bench.running[0]);
  EXPECT_THAT(bench.run_all(), ElementsAre(5)) << "its own core is its own";
  bench.returns(*bench.running[2]);
  EXPECT_THAT(bench.run_all(), ElementsAre(4));
  EXPECT_EQ(bench.running.back()->core_bits, 0b110U) << "all that others leave";
}

TEST(LaneTable, AJobOfLowPriorityAgesBesideAnExclusiveResidence) {
  Bench bench(2);
  auto fair = device::fair_arbiter();
  bench.table.swap_arbiter(fair, bench.now, bench.after);
  bench.own(1);
  bench.submit({}, 1);
  bench.submit({}, 1);
  EXPECT_THAT(bench.run_all(), ElementsAre(1, 2));
  bench.executable = bench.other;
  bench.submit({}, 0);
  bench.executable = bench.fake.executable;
  bench.submit({}, 1);
  bench.submit({}, 1);
  const auto second = bench.running[1];
  ASSERT_EQ(second->core_bits, 2U);
  bench.now = bench.now + device::kAgeingStep - milliseconds(1);
  bench.returns(*second);
  EXPECT_THAT(bench.run_all(), ElementsAre(4));
  bench.now = bench.now + milliseconds(1);
  bench.returns(*bench.running.back());
  EXPECT_THAT(bench.run_all(), ElementsAre(3));
}

/// Notes what it is shown, and grants as fifo_arbiter().
struct Witness final : device::Arbiter {
  std::optional<device::Grant> pick(std::span<const device::WaitingJob> waiting,
                                    std::span<const device::CoreState> cores,
                                    TimePoint now) const override {
    asked.clear();
    for (const auto& job : waiting) asked.push_back(job.cores.to_string());
    usable.clear();
    for (const auto& core : cores) usable += core.usable ? (core.owned ? 'o' : 'u') : '-';
    return device::fifo_arbiter()->pick(waiting, cores, now);
  }
  mutable std::vector<std::string> asked;
  mutable std::string usable;
};

TEST(LaneTable, AnArbiterOfTheUsersSeesForEachJobTheCoresThatItMayHave) {
  Bench bench;
  const auto witness = std::make_shared<Witness>();
  std::shared_ptr<const device::Arbiter> given = witness;
  bench.table.swap_arbiter(given, bench.now, bench.after);
  bench.submit(device::CoreSet::first(3));
  bench.run_all();
  bench.own(1);
  bench.executable = bench.other;
  for (const auto& cores : {device::CoreSet::platform(), device::CoreSet::any(),
                            device::CoreSet::any_of(device::CoreSet::of({0, 2}))})
    bench.submit(cores);
  bench.returns(*bench.running[0]);
  // Jobs that may all use the same cores are shown as they were submitted.
  EXPECT_EQ(witness->usable, "-uu");
  EXPECT_THAT(bench.run_all(), ElementsAre(2));
  EXPECT_THAT(witness->asked, ElementsAre("any", "any@0,2"));
  bench.executable = bench.fake.executable;
  bench.submit(device::CoreSet::any(2));
  EXPECT_EQ(witness->usable, "ouu");
  EXPECT_THAT(witness->asked, ElementsAre("any@1,2", "any@2", "any:2"));
  EXPECT_TRUE(bench.after->complaints.empty());
}

TEST(LaneTable, JobThatTheEngineLostEndsWhereOthersHaveItsCoresByNow) {
  Bench bench(2);
  const auto job = bench.submit(device::CoreSet::first(2));
  bench.run_all();
  bench.executable = bench.other;
  bench.own(1);
  bench.returns(*job, Bench::lost());
  EXPECT_EQ(job->status().code(), Code::kOutOfCores);
}

TEST(LaneTable, JobThatTheEngineLostRunsOnNoCpuUntilAnotherThreadHasIt) {
  Bench bench(1);
  const auto job = bench.submit();
  bench.run_all();
  EXPECT_EQ(bench.table.counters().busy_cores, 1U);
  job->cpu = RunningCpu::of_this_thread();
  bench.returns(*job, Bench::lost());
  ASSERT_TRUE(bench.table.is(*job, JobState::kGranted));
  EXPECT_FALSE(job->cpu.number());
  bench.run_all();
  bench.returns(*job);
  EXPECT_EQ(bench.table.counters().busy_cores, 0U);
}

TEST(LaneTable, JobThatTheEngineLostGoesBackBeforeLaterOnesOnce) {
  Bench bench(1);
  const auto first = bench.submit();
  EXPECT_THAT(bench.run_all(), ElementsAre(1));
  const auto second = bench.submit();
  bench.returns(*first, Bench::lost());
  EXPECT_FALSE(first->done());
  EXPECT_EQ(bench.table.counters().resets, 1U);
  EXPECT_THAT(bench.run_all(), ElementsAre(1));
  bench.returns(*first, Bench::lost());
  EXPECT_TRUE(first->done());
  EXPECT_EQ(first->status().code(), Code::kDeviceLost);
  EXPECT_THAT(bench.run_all(), ElementsAre(2));
  EXPECT_EQ(bench.table.counters().completed, 1U);
}

TEST(LaneTable, JobThatWentBackMayBeCancelledOrTimeOut) {
  Bench bench(1);
  const auto one = bench.submit({}, 0, at(9));
  const auto two = bench.submit();
  bench.run_all();
  const auto blocker = bench.submit({}, 9);
  bench.returns(*one, Bench::lost());
  EXPECT_THAT(bench.run_all(), ElementsAre(3));
  bench.table.deadline_passed(*one, at(9), bench.after);
  EXPECT_EQ(one->status().code(), Code::kTimeout);
  EXPECT_TRUE(one->released());
  bench.returns(*blocker);
  bench.run_all();
  bench.submit({}, 9);
  bench.returns(*two, Bench::lost());
  EXPECT_TRUE(bench.table.cancel(*two, bench.now, bench.after));
  EXPECT_EQ(two->status().code(), Code::kCancelled);
}

TEST(LaneTable, JobWhoseInputsAreCopiedCanNeitherEndNorStart) {
  for (const int copied : {5, 9}) {
    Bench bench(1);
    bench.waits = {std::make_shared<device::Fence>(), std::make_shared<device::Fence>()};
    const auto job = bench.submit({}, 0, at(9));
    EXPECT_FALSE(bench.table.fence_signalled(*job, {}, bench.now, bench.after));
    EXPECT_TRUE(bench.table.fence_signalled(*job, {}, bench.now, bench.after));
    EXPECT_TRUE(bench.table.is(*job, JobState::kCopyingIn));
    EXPECT_FALSE(bench.table.cancel(*job, bench.now, bench.after));
    bench.table.deadline_passed(*job, at(9), bench.after);
    EXPECT_FALSE(job->done());
    EXPECT_TRUE(bench.run_all().empty());
    bench.table.inputs_copied(*job, at(copied), bench.after);
    // The deadline that passed meanwhile counts when the copy is done.
    EXPECT_EQ(job->done(), copied == 9);
    EXPECT_EQ(bench.run_all().size(), copied == 9 ? 0U : 1U);
  }
}

TEST(LaneTable, AbandonedJobIsDoneAtOnceAndReleasedWhenTheEngineReturns) {
  Bench bench(1);
  const auto job = bench.submit({}, 0, at(3));
  bench.run_all();
  bench.table.deadline_passed(*job, at(3), bench.after);
  EXPECT_TRUE(job->done());
  EXPECT_FALSE(job->released());
  EXPECT_TRUE(bench.after->abandoned);
  EXPECT_EQ(bench.table.abandoned_count(), 1U);
  EXPECT_FALSE(bench.table.begin_copy_out(*job));
  bench.submit();
  EXPECT_THAT(bench.run_all(), ElementsAre(2));
  bench.returns(*job);
  EXPECT_TRUE(job->released());
  EXPECT_EQ(job->status().code(), Code::kTimeout);
  EXPECT_EQ(bench.table.abandoned_count(), 0U);
}

TEST(LaneTable, ResultThatIsCopiedOutIsInTime) {
  Bench bench(1);
  const auto job = bench.submit({}, 0, at(3));
  bench.run_all();
  EXPECT_TRUE(bench.table.begin_copy_out(*job));
  bench.table.deadline_passed(*job, at(3), bench.after);
  bench.table.reset(1, at(3), bench.after);
  EXPECT_FALSE(job->done());
  bench.returns(*job);
  EXPECT_TRUE(job->status().ok());
}

TEST(LaneTable, GrantedJobNeedsAWorkerUnlessAThreadThatMayRunItWaits) {
  Bench bench(3);
  const auto alone = bench.submit();
  const auto awaited = bench.submit();
  const auto timed = bench.submit({}, 0, at(9));
  bench.table.add_waiter(*awaited);
  bench.table.add_waiter(*timed);
  EXPECT_EQ(bench.table.needed_workers(bench.after), 2U);
  EXPECT_THAT(bench.after->offered, ElementsAre(awaited));
  EXPECT_TRUE(bench.table.run(*awaited, bench.now));
  EXPECT_FALSE(bench.table.run(*awaited, bench.now));
  EXPECT_THAT(bench.run_all(), ElementsAre(alone->id, timed->id));
}

TEST(LaneTable, BlockingRunTakesIdleCoresOnlyWhileNobodyWaits) {
  Bench bench(1);
  const auto tensors = bench.job();
  LaneOccupant here;
  here.bound = tensors->bindings.get();
  ASSERT_TRUE(bench.table.begin_here(here, *bench.queue, {}, bench.after));
  LaneOccupant other;
  other.bound = here.bound;
  EXPECT_FALSE(bench.table.begin_here(other, *bench.queue, {}, bench.after));
  // Lost once, it repeats on the cores that it has; lost twice, it fails.
  EXPECT_TRUE(bench.table.repeat_here(here, Bench::lost(), bench.now, bench.after));
  EXPECT_FALSE(bench.table.repeat_here(here, Bench::lost(), bench.now, bench.after));
  const auto waiting = bench.submit();
  Outcome outcome;
  bench.table.end_here(here, *bench.queue, {}, outcome, bench.now, nullptr, bench.after);
  EXPECT_FALSE(bench.table.begin_here(other, *bench.queue, {}, bench.after));
  EXPECT_THAT(bench.run_all(), ElementsAre(waiting->id));
}

TEST(LaneTable, EventDrivenJobThatIsAbandonedBeforeItsStartIsNotStarted) {
  Bench bench(1, true);
  const auto job = bench.submit();
  bench.table.reset(1, bench.now, bench.after);
  EXPECT_TRUE(job->done());
  ASSERT_EQ(bench.table.next_start(), job);
  EXPECT_FALSE(bench.table.may_start(job, false, bench.after));
  EXPECT_TRUE(job->released());
}

TEST(LaneTable, LossEndsEveryJobInEveryState) {
  Bench bench(2);
  const auto running = bench.submit();
  bench.run_all();
  const auto copied_out = bench.submit();
  bench.run_all();
  EXPECT_TRUE(bench.table.begin_copy_out(*copied_out));
  const auto waiting = bench.submit();
  bench.waits = {std::make_shared<device::Fence>()};
  const auto blocked = bench.submit();
  const auto copied_in = bench.submit();
  ASSERT_TRUE(bench.table.fence_signalled(*copied_in, {}, bench.now, bench.after));
  bench.waits.clear();
  bench.table.lose("a test", at(5), bench.after);
  for (const auto& job : {running, waiting, blocked}) {
    EXPECT_EQ(job->status().code(), Code::kDeviceLost);
    EXPECT_EQ(job->record().ended, at(5));
  }
  EXPECT_FALSE(running->released());
  EXPECT_TRUE(waiting->released() && blocked->released());
  EXPECT_FALSE(copied_in->done() || copied_out->done());
  bench.table.inputs_copied(*copied_in, bench.now, bench.after);
  EXPECT_EQ(copied_in->status().code(), Code::kDeviceLost);
  // Its result was there.
  bench.returns(*copied_out);
  EXPECT_TRUE(copied_out->status().ok());
  bench.returns(*running);
  EXPECT_TRUE(running->released());
  const auto refused = bench.table.submit(bench.job(), false, bench.now, bench.after);
  EXPECT_EQ(refused.code(), Code::kDeviceLost);
  EXPECT_THAT(refused.message(), ::testing::HasSubstr("prepare again when it is back"));
  EXPECT_EQ(bench.table.loss().generation().error().code(), Code::kDeviceLost);
  bench.table.back(at(9), bench.after);
  EXPECT_EQ(*bench.table.loss().generation(), 1U);
  EXPECT_EQ(bench.table.submit(bench.job(), false, bench.now, bench.after).code(),
            Code::kDeviceLost);
  EXPECT_EQ(bench.queue->depth, 0U);
  EXPECT_EQ(bench.table.busy_cores(), 0U);
}

TEST(LaneTable, GrantedJobsAndResidencesEndWithTheDevice) {
  Bench bench(2);
  const auto granted = bench.submit();
  const auto* executable = &granted->executable();
  const auto residence =
      bench.table.hold_cores(executable, 2, device::Residency::kExclusive, bench.now, bench.after);
  ASSERT_TRUE(residence.has_value());
  bench.table.lose("a test", bench.now, bench.after);
  EXPECT_EQ(granted->status().code(), Code::kDeviceLost);
  EXPECT_TRUE(granted->released());
  EXPECT_FALSE(bench.table.any_ready());
  EXPECT_EQ(bench.table.cores().owned_bits(), 0U);
  bench.table.release_cores(*residence, bench.now, bench.after);
  EXPECT_EQ(
      bench.table.hold_cores(executable, 2, device::Residency::kShared, bench.now, bench.after)
          .error()
          .code(),
      Code::kDeviceLost);
}

TEST(LaneTable, JobsBeyondTheDepthAreRefusedAsIfTheyHadNeverBeenThere) {
  Bench bench(1, false, true, 2);
  const auto running = bench.submit();
  bench.submit();
  bench.submit();
  const std::size_t submitted = bench.table.counters().submitted;
  const auto refused = bench.job();
  const Status status = bench.table.submit(refused, true, bench.now, bench.after);
  EXPECT_EQ(status.code(), Code::kBusy);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("2 of the 2 jobs"));
  EXPECT_EQ(status.detail(Detail::kLimit), "2 jobs");
  EXPECT_EQ(bench.table.counters().submitted, submitted);
  EXPECT_EQ(bench.queue->depth, 3U);
  // The timer of its deadline comes too late.
  bench.table.deadline_passed(*refused, at(99), bench.after);
  EXPECT_TRUE(bench.after->completed.empty());
  EXPECT_THAT(bench.run_all(), ElementsAre(1));
  bench.returns(*running);
  EXPECT_TRUE(bench.table.submit(bench.job(), false, bench.now, bench.after).ok());
}

TEST(LaneTable, JobsThatWaitForFencesCountAsWaiting) {
  Bench bench(1, false, true, 2);
  bench.waits = {std::make_shared<device::Fence>()};
  const auto first = bench.submit();
  bench.submit();
  EXPECT_EQ(bench.table.submit(bench.job(), false, bench.now, bench.after).code(), Code::kBusy);
  // One that starts at once does not wait.
  bench.waits.clear();
  bench.submit();
  EXPECT_EQ(bench.table.submit(bench.job(), false, bench.now, bench.after).code(), Code::kBusy);
  // While its inputs are copied it waits on.
  ASSERT_TRUE(bench.table.fence_signalled(*first, {}, bench.now, bench.after));
  EXPECT_EQ(bench.table.submit(bench.job(), false, bench.now, bench.after).code(), Code::kBusy);
  bench.table.inputs_copied(*first, bench.now, bench.after);
  EXPECT_EQ(bench.table.submit(bench.job(), false, bench.now, bench.after).code(), Code::kBusy);
  EXPECT_TRUE(bench.table.cancel(*first, bench.now, bench.after));
  EXPECT_TRUE(bench.table.submit(bench.job(), false, bench.now, bench.after).ok());
}

TEST(LaneTable, ALateJobIsNotRefusedForTheLine) {
  Bench bench(1, false, true, 1);
  bench.submit();
  bench.submit();
  const auto late = bench.submit({}, 0, at(0));
  EXPECT_EQ(late->status().code(), Code::kTimeout);
}

}  // namespace
}  // namespace corelane::lanes
