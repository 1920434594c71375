#include "lanes/lane_workers.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace corelane::lanes
