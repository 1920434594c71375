#include "lanes/lane_workers.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>

#include "base/process/cpus.h"
#include "lanes/aftermath.h"

namespace corelane::lanes {
namespace {

/// A pool on a system that gives `threads` threads, which end at once: the test plays them.
struct WorkersBench {
  explicit WorkersBench(int threads)
      : pool(2, clock, Duration{}, [this, threads](LaneWorkers::Worker& worker, Aftermath&) {
          if (static_cast<int>(started.size()) == threads) return std::thread();
          started.push_back(&worker);
          return std::thread([] {});
        }) {}
  ~WorkersBench() {
    for (std::thread& thread : pool.stop()) thread.join();
  }
  VirtualClock clock;
  std::vector<LaneWorkers::Worker*> started;
  LaneWorkers pool;
  Aftermath after;
};

TEST(LaneWorkers, CallStartsOnlyWhatIsNotComing) {
  WorkersBench bench(9);
  bench.pool.call(1, bench.after);
  EXPECT_EQ(bench.started.size(), 1U);
  bench.pool.call(1, bench.after);
  EXPECT_EQ(bench.started.size(), 1U);
  bench.pool.looks();  // The first worker has taken a job.
  bench.pool.call(1, bench.after);
  EXPECT_EQ(bench.started.size(), 2U);
  bench.pool.comes();  // It will look again.
  bench.pool.call(2, bench.after);
  EXPECT_EQ(bench.started.size(), 2U);
}

TEST(LaneWorkers, WorkerThatEndedIsStartedAnew) {
  WorkersBench bench(9);
  bench.pool.call(1, bench.after);
  bench.pool.looks();
  bench.pool.ended(*bench.started[0]);
  bench.pool.call(1, bench.after);
  ASSERT_EQ(bench.started.size(), 2U);
  EXPECT_EQ(bench.started[0], bench.started[1]);
}

TEST(LaneWorkers, WithoutAnyThreadTheLogSaysSo) {
  WorkersBench bench(0);
  bench.pool.call(3, bench.after);
  EXPECT_TRUE(bench.pool.none());
  EXPECT_EQ(bench.after->complaints.size(), 1U);
  WorkersBench one(1);
  one.pool.call(3, one.after);
  EXPECT_TRUE(one.after->complaints.empty());
}

/// With one for each core, jobs with callbacks started and ended 250 threads a second (issue 17).
TEST(LaneWorkers, MoreThanTwoForEachCoreAndOneForEachAbandonedJobAreSurplus) {
  WorkersBench bench(9);
  bench.pool.call(4, bench.after);
  EXPECT_FALSE(bench.pool.surplus(0));
  bench.pool.call(5, bench.after);
  EXPECT_TRUE(bench.pool.surplus(0));
  EXPECT_FALSE(bench.pool.surplus(1));
}

/// Two lanes shared a CPU for 4 to 10 ms after they were woken, while another CPU was idle (issue
/// 17).
TEST(LaneWorkers, AWokenWorkerLeavesTheCpusOfRunningOnesWhereItIsOnOneOfThem) {
  WorkersBench bench(9);
  bench.pool.call(3, bench.after);
  LaneWorkers::Worker &one = *bench.started[0], &other = *bench.started[1];
  EXPECT_TRUE(bench.pool.begin_job(one, true).empty()) << "it is the only one";
  if (!one.cpu.number() || process_cpus() < 2) GTEST_SKIP() << "CPUs are not told, or one";
  // The test plays all workers, in one thread: on one CPU.
  EXPECT_TRUE(bench.pool.begin_job(other, false).empty()) << "it goes on";
  const auto taken = bench.pool.begin_job(other, true);
  ASSERT_EQ(taken.size(), 1U);
  LaneWorkers::end_job(one);
  EXPECT_TRUE(bench.pool.begin_job(other, true).empty()) << "the first one runs no job";
}

TEST(LaneWorkers, AWorkerOnACpuOfItsOwnStaysThere) {
  const std::vector<std::size_t> cpus = affine_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "this thread has one CPU";
  WorkersBench bench(9);
  bench.pool.call(2, bench.after);
  std::atomic<bool> over{false}, begun{false};
  const auto pin_to = [](std::size_t cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
  };
  std::thread running([&] {
    pin_to(cpus[0]);
    EXPECT_TRUE(bench.pool.begin_job(*bench.started[0], true).empty());
    begun = true;
    while (!over) sched_yield();
  });
  std::thread([&] {
    while (!begun) sched_yield();
    pin_to(cpus[1]);
    EXPECT_TRUE(bench.pool.begin_job(*bench.started[1], true).empty());
  }).join();
  over = true;
  running.join();
}

}  // namespace
}  // namespace corelane::lanes
