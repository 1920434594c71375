// Limits of a device: memory that its objects hold, and jobs that wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanes/testing/lane_engine_fake.h"

namespace corelane::lanes {
namespace {

using ::testing::HasSubstr;

device::LaneOptions limits(std::size_t memory, std::size_t depth = 0) {
  device::LaneOptions options;
  options.memory_limit = memory;
  options.depth_limit = depth;
  return options;
}

/// The fake executable takes 1010 bytes, a tensor of it 16.
constexpr std::size_t kExecutable = 1010;

TEST(LaneLimits, InfoSaysThem) {
  FakeDevice fake(2, limits(4096, 7));
  EXPECT_EQ(fake.device->info().memory_limit, 4096U);
  EXPECT_EQ(fake.device->info().depth_limit, 7U);
}

TEST(LaneLimits, BuffersCountWhileTheyLive) {
  FakeDevice fake(1, limits(kExecutable + 8192));
  auto first = fake.device->create_buffer(8192, {});
  ASSERT_TRUE(first.has_value());
  const auto refused = fake.device->create_buffer(1, {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kOutOfMemory);
  EXPECT_THAT(refused.error().message(), HasSubstr("9202 of its 9202 bytes"));
  EXPECT_EQ(fake.device->memory().total(), kExecutable + 8192);
  // Refused by the system, not by the limit: nothing stays counted.
  first->reset();
  EXPECT_EQ(fake.device->create_buffer(0, {}).error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(fake.device->create_buffer(8192, {}).has_value());
}

TEST(LaneLimits, ExecutablesCountWhileTheyLive) {
  FakeDevice fake(1, limits(2 * kExecutable + 5));
  auto second = fake.device->prepare({}, {});
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(fake.device->prepare({}, {}).error().code(), Code::kOutOfMemory);
  // What was refused is gone.
  EXPECT_EQ(fake.device->memory().total(), 2 * kExecutable);
  second->reset();
  EXPECT_TRUE(fake.device->prepare({}, {}).has_value());
}

TEST(LaneLimits, BindingsCountWhileTheyLive) {
  FakeDevice fake(1, limits(kExecutable + 40));
  device::Submission held = fake.job();
  ASSERT_TRUE(fake.queue->run(held).ok());
  auto more = *fake.executable->new_bindings();
  const auto refused = more->input(0);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kOutOfMemory);
  EXPECT_THAT(refused.error().message(), HasSubstr("'x'"));
  // A run that needs such memory is refused too, and leaves the bindings free.
  device::Submission job = held;
  job.bindings = more;
  EXPECT_EQ(fake.queue->submit(job).error().code(), Code::kOutOfMemory);
  held = {};
  EXPECT_TRUE(fake.queue->run(job).ok());
}

TEST(LaneLimits, CopiesForMoreCoresAreRefusedBeforeTheyAreMade) {
  FakeDevice fake(3, limits(2100));
  fake.state->counts_copies = true;
  const auto one = fake.executable->new_bindings();
  const auto two = fake.executable->new_bindings();
  ASSERT_TRUE(one.has_value() && two.has_value());
  EXPECT_EQ(fake.state->copies, 2U);
  const auto three = fake.executable->new_bindings();
  ASSERT_FALSE(three.has_value());
  EXPECT_EQ(three.error().code(), Code::kOutOfMemory);
  EXPECT_EQ(fake.state->copies, 2U);
}

TEST(LaneLimits, ARefusedSubmissionLeavesBindingsAndFencesAlone) {
  FakeDevice fake(1, limits(0, 1));
  Gate gate;
  fake.state->hold_runs_at(gate);
  const auto running = *fake.queue->submit(fake.job());
  gate.await(1);
  const auto waiting = *fake.queue->submit(fake.job());
  device::Submission job = fake.job();
  auto fence = std::make_shared<device::Fence>();
  job.signal = {fence};
  const auto refused = fake.queue->submit(job);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kBusy);
  EXPECT_EQ(fake.queue->run(job).code(), Code::kBusy);
  EXPECT_FALSE(fence->signalled());
  EXPECT_EQ(fake.queue->depth(), 2U);
  // The bindings are free: they take other memory.
  EXPECT_TRUE(job.bindings->set_input(0, {}).ok());
  gate.open();
  EXPECT_TRUE(running->wait() && waiting->wait());
  EXPECT_TRUE(fake.queue->run(job).ok());
  EXPECT_TRUE(fence->wait());
}

TEST(LaneLimits, ABlockingRunOnAnIdleCoreNeedsNoPlace) {
  FakeDevice fake(2, limits(0, 1));
  device::Submission waits = fake.job();
  auto gate = std::make_shared<device::Fence>();
  waits.wait = {gate};
  const auto waiting = *fake.queue->submit(waits);
  EXPECT_TRUE(fake.queue->run(fake.job()).ok());
  gate->signal();
  EXPECT_TRUE(waiting->wait());
}

}  // namespace
}  // namespace corelane::lanes
