// The line about a job that runs for long, and what it takes to know.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "corelane/base/log.h"
#include "corelane/device/registry.h"
#include "device/registry/testing/listed_faults.h"
#include "lanes/lane_table.h"
#include "lanes/testing/lane_engine_fake.h"

namespace corelane::lanes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The warnings of the length of a test.
class Warnings {
 public:
  Warnings() {
    log::set_callback([this](log::Level level, std::string_view, std::string_view text) {
      if (level != log::Level::kWarn) return;
      const std::lock_guard guard(mutex_);
      lines_.emplace_back(text);
    });
  }
  ~Warnings() { log::set_callback({}); }
  std::vector<std::string> lines() {
    const std::lock_guard guard(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

/// A device whose runs wait at a gate, and a queue of a program.
struct WatchBench {
  explicit WatchBench(std::size_t cores = 2) : fake(cores, on_virtual_clock(clock)) {
    fake.state->hold_runs_at(gate);
    queue = *fake.device->make_queue({"detector", 0, "the_option"});
  }
  std::shared_ptr<device::Completion> submit(std::size_t core) {
    return *queue->submit(fake.job(device::CoreSet::of({core})));
  }
  std::shared_ptr<VirtualClock> clock = std::make_shared<VirtualClock>();
  Gate gate;
  FakeDevice fake;
  std::shared_ptr<device::Queue> queue;
};

TEST(LaneWatch, AJobThatRunsFor30SecondsGetsOneLineWithProgramCoreAndOption) {
  Warnings log;
  WatchBench bench;
  auto stuck = bench.submit(1);
  bench.gate.await(1);
  bench.clock->advance(kLongRun - milliseconds(1));
  EXPECT_THAT(log.lines(), IsEmpty());
  bench.clock->advance(milliseconds(1));
  EXPECT_THAT(log.lines(), ElementsAre(AllOf(HasSubstr("'detector'"), HasSubstr("core set '1'"),
                                             HasSubstr("30 s"), HasSubstr("the_option"))));
  bench.clock->advance(10 * kLongRun);
  EXPECT_EQ(log.lines().size(), 1U);
  EXPECT_EQ(bench.clock->next_timer(), kNever);  // Nothing looks any more.
  bench.gate.open();
  ASSERT_TRUE(stuck->wait());
  EXPECT_TRUE(stuck->status().ok());
}

TEST(LaneWatch, ABlockingRunInItsCallersThreadIsWatchedToo) {
  Warnings log;
  WatchBench bench(1);
  std::thread caller([&] { EXPECT_TRUE(bench.queue->run(bench.fake.job()).ok()); });
  bench.gate.await(1);
  bench.clock->advance(kLongRun);
  EXPECT_THAT(log.lines(), ElementsAre(HasSubstr("'detector'")));
  bench.gate.open();
  caller.join();
}

TEST(LaneWatch, EachJobIsToldOfWhenItsOwnTimeHasCome) {
  Warnings log;
  WatchBench bench;
  auto first = bench.submit(0);
  bench.gate.await(1);
  bench.clock->advance(seconds(10));
  auto second = bench.submit(1);
  bench.gate.await(2);
  bench.clock->advance(seconds(20));
  EXPECT_THAT(log.lines(), ElementsAre(HasSubstr("core set '0'")));
  bench.clock->advance(seconds(10) - milliseconds(1));
  EXPECT_EQ(log.lines().size(), 1U);
  bench.clock->advance(milliseconds(1));
  EXPECT_THAT(log.lines(), ElementsAre(HasSubstr("core set '0'"), HasSubstr("core set '1'")));
  bench.gate.open();
  ASSERT_TRUE(first->wait() && second->wait());
}

TEST(LaneWatch, AJobWithADeadlineHasNoLine) {
  Warnings log;
  WatchBench bench;
  device::Submission job = bench.fake.job();
  job.deadline = bench.clock->now() + 2 * kLongRun;
  auto limited = *bench.queue->submit(job);
  bench.gate.await(1);
  bench.clock->advance(2 * kLongRun);
  ASSERT_TRUE(limited->done());
  EXPECT_EQ(limited->status().code(), Code::kTimeout);
  EXPECT_THAT(limited->status().message(), AllOf(HasSubstr("'detector'"), HasSubstr("reset")));
  EXPECT_THAT(log.lines(), IsEmpty());
  bench.gate.open();
  ASSERT_TRUE(limited->wait_released());
}

TEST(LaneWatch, OneTimerServesAllRunsOf30Seconds) {
  Warnings log;
  WatchBench bench(1);
  bench.gate.open();
  ASSERT_TRUE(bench.queue->run(bench.fake.job()).ok());
  const TimePoint due = bench.clock->next_timer();
  EXPECT_EQ(due, bench.clock->now() + kLongRun);
  for (int i = 0; i < 100; ++i) {
    bench.clock->advance(milliseconds(1));
    ASSERT_TRUE(bench.queue->run(bench.fake.job()).ok());
    EXPECT_EQ(bench.clock->next_timer(), due);
  }
  bench.clock->advance(kLongRun);
  EXPECT_EQ(bench.clock->next_timer(), kNever);  // No job runs: the next one sets it again.
  ASSERT_TRUE(bench.queue->run(bench.fake.job()).ok());
  EXPECT_EQ(bench.clock->next_timer(), bench.clock->now() + kLongRun);
  EXPECT_THAT(log.lines(), IsEmpty());
}

TEST(LaneWatch, TheTimerGoesWithTheDevice) {
  auto clock = std::make_shared<VirtualClock>();
  {
    const FakeDevice fake(1, on_virtual_clock(clock));
    ASSERT_TRUE(fake.queue->run(fake.job()).ok());
    EXPECT_NE(clock->next_timer(), kNever);
  }
  EXPECT_EQ(clock->next_timer(), kNever);
}

TEST(LaneWatch, AnEventDrivenEngineIsWatchedToo) {
  Warnings log;
  auto clock = std::make_shared<VirtualClock>();
  auto faults = std::make_shared<device::ListedFaults>(std::vector{device::Fault::kHang});
  const FakeDevice fake(1, on_virtual_clock(clock, faults), true);
  auto hung = *fake.queue->submit(fake.job());
  clock->advance(kLongRun);
  EXPECT_THAT(log.lines(), ElementsAre(HasSubstr("has run on core set '0'")));
  ASSERT_TRUE(fake.device->reset(device::CoreSet::of({0})).ok());
  EXPECT_EQ(hung->status().code(), Code::kDeviceReset);
}

}  // namespace
}  // namespace corelane::lanes
