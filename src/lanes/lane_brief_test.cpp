// Brief jobs: with a deadline, in the thread of the caller who waits for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "corelane/device/fault.h"
#include "lanes/testing/lane_engine_fake.h"

namespace corelane::lanes {
namespace {

using std::chrono::hours;

/// A fault point that strikes nothing.
class NoFaults final : public device::FaultPoint {
 public:
  device::Fault at_run(std::uint64_t, std::uint64_t) override { return device::Fault::kNone; }
  Duration slow_by() const override { return {}; }
};

/// A device whose runs say in which thread they are, and a job with a deadline that has run once.
struct BriefDevice {
  explicit BriefDevice(std::size_t cores = 1, device::LaneOptions options = {})
      : fake(cores, std::move(options)), job(fake.job()) {
    fake.state->before_run = [this](std::uint64_t) {
      ran_in = std::this_thread::get_id();
      return Status();
    };
    fake.state->brief = true;
    EXPECT_TRUE(job.bindings->set_input(0, {x.data(), 16, {1, 4}, nullptr}).ok());
    EXPECT_TRUE(job.bindings->set_output(0, {y.data(), 16, {1, 4}, nullptr}).ok());
    job.deadline = fake.device->clock()->now() + hours(1);
    job.here_if_brief = true;
    EXPECT_TRUE(fake.queue->run(job).ok());
    EXPECT_NE(ran_in.load(), std::this_thread::get_id()) << "nothing is known of the first run";
    ran_in = std::thread::id();
  }
  /// Whether it ran here, once it has ended well.
  bool submit_runs_here() {
    const auto completion = fake.queue->submit(job);
    EXPECT_TRUE(completion) << completion.error().to_string();
    const bool done = (*completion)->done();
    EXPECT_TRUE((*completion)->wait_released());
    EXPECT_TRUE((*completion)->status().ok());
    const bool here = ran_in.load() == std::this_thread::get_id();
    EXPECT_TRUE(done || !here);
    return here;
  }

  std::vector<float> x{1, 2, 3, 4}, y = std::vector<float>(4, -1.0F);
  std::atomic<std::thread::id> ran_in{};
  FakeDevice fake;
  device::Submission job;
};

TEST(LaneBrief, JobWithADeadlineRunsInItsCallersThread) {
  BriefDevice device;
  device.x = {10, 20, 30, 40};
  EXPECT_TRUE(device.submit_runs_here());
  EXPECT_THAT(device.y, ::testing::ElementsAre(20, 40, 60, 80));
  device.ran_in = std::thread::id();
  ASSERT_TRUE(device.fake.queue->run(device.job).ok());
  EXPECT_EQ(device.ran_in.load(), std::this_thread::get_id());
  EXPECT_EQ(device.fake.device->counters().completed, 3U);
  EXPECT_EQ(device.fake.queue->depth(), 0U);
}

TEST(LaneBrief, RecordAndCallbackAreThoseOfAnyJob) {
  BriefDevice device;
  device.job.tag = 77;
  const auto completion = *device.fake.queue->submit(device.job);
  ASSERT_TRUE(completion->done());
  EXPECT_TRUE(completion->released());
  EXPECT_TRUE(completion->wait());
  EXPECT_FALSE(completion->cancel());
  const device::JobRecord record = completion->record();
  EXPECT_EQ(record.tag, 77U);
  EXPECT_EQ(record.core_bits, 1U);
  EXPECT_EQ(record.bytes_in, 16U);
  EXPECT_GE(record.ended, record.started);
  int calls = 0;
  completion->on_done([&](device::Completion& done) { calls += done.status().ok() ? 1 : 100; });
  EXPECT_EQ(calls, 1);
}

TEST(LaneBrief, OnlyWhereItsCallerWaits) {
  BriefDevice device;
  device.job.here_if_brief = false;
  EXPECT_FALSE(device.submit_runs_here());
}

TEST(LaneBrief, OnlyWhereTheRunIsBrief) {
  BriefDevice device;
  device.fake.state->brief = false;
  const int binds = device.fake.state->binds;
  EXPECT_FALSE(device.submit_runs_here());
  EXPECT_EQ(device.fake.state->binds, binds) << "the copies of user memory stay bound";
}

TEST(LaneBrief, NotWhereFaultsAreInjected) {
  device::LaneOptions options;
  options.fault_point = std::make_shared<NoFaults>();
  BriefDevice device(1, options);
  EXPECT_FALSE(device.submit_runs_here());
}

TEST(LaneBrief, NotWithFences) {
  BriefDevice device;
  device.job.wait = {std::make_shared<device::Fence>()};
  device.job.wait.front()->signal();
  EXPECT_FALSE(device.submit_runs_here());
  device.job.wait.clear();
  device.job.signal = {std::make_shared<device::Fence>()};
  EXPECT_FALSE(device.submit_runs_here());
  // The completion ends before it signals: only the fence itself says when.
  EXPECT_TRUE(device.job.signal.front()->wait());
}

TEST(LaneBrief, NotWhileAnotherJobHasTheCore) {
  BriefDevice device;
  Gate gate;
  device.fake.state->hold_runs_at(gate);
  const device::Submission other = device.fake.job();
  const auto first = *device.fake.queue->submit(other);
  gate.await(1);
  const auto second = *device.fake.queue->submit(device.job);
  EXPECT_FALSE(second->done());
  gate.open();
  EXPECT_TRUE(second->wait());
  EXPECT_TRUE(first->wait());
}

TEST(LaneBrief, NotOnACoreWhereItHasNotRun) {
  BriefDevice device(2);
  Gate gate;
  const std::uint64_t last = 1;
  device.fake.state->before_run = [&](std::uint64_t bits) {
    device.ran_in = std::this_thread::get_id();
    if (bits == last) gate.pass();
    return Status();
  };
  const device::Submission other = device.fake.job(device::CoreSet::mask(last));
  const auto first = *device.fake.queue->submit(other);
  gate.await(1);
  EXPECT_FALSE(device.submit_runs_here()) << "the engine may have to make a request first";
  gate.open();
  EXPECT_TRUE(first->wait());
}

TEST(LaneBrief, DeadlineThatHasPassedEndsItUnstarted) {
  BriefDevice device;
  const int runs = device.fake.state->runs;
  device.job.deadline = device.fake.device->clock()->now();
  EXPECT_EQ(device.fake.queue->run(device.job).code(), Code::kTimeout);
  EXPECT_EQ(device.fake.state->runs, runs);
}

}  // namespace
}  // namespace corelane::lanes
