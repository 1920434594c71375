#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corelane/device/registry.h"
#include "device/registry/testing/listed_faults.h"
#include "lanes/testing/lane_engine_fake.h"

namespace corelane::lanes {
namespace {

using std::chrono::milliseconds;

TEST(LaneFailure, RunningJobIsAbandonedAtItsDeadlineAndReleasedLater) {
  auto clock = std::make_shared<VirtualClock>();
  FakeDevice fake(2, on_virtual_clock(clock));
  device::EventLog events;
  ASSERT_TRUE(events.watch(*fake.device).ok());
  Gate gate;
  fake.state->before_run = [&](std::uint64_t bits) {
    if (bits == 1) gate.pass();
    return Status();
  };
  device::Submission job = fake.job(device::CoreSet::of({0}), 5);
  auto memory = std::make_unique<std::vector<float>>(4, -1.0F);
  ASSERT_TRUE(job.bindings->set_output(0, {memory->data(), 16, {1, 4}, nullptr}).ok());
  job.deadline = clock->now() + milliseconds(10);
  auto completion = *fake.queue->submit(job);
  gate.await(1);
  clock->advance(milliseconds(9));
  EXPECT_FALSE(completion->done());
  EXPECT_EQ(fake.state->abandoned, 0);
  clock->advance(milliseconds(1));
  ASSERT_TRUE(completion->done());
  EXPECT_EQ(fake.state->abandoned, 1) << "the engine may end it early";
  EXPECT_EQ(completion->status().code(), Code::kTimeout);
  EXPECT_EQ(completion->record().ended, job.deadline);
  EXPECT_FALSE(completion->released());
  EXPECT_EQ(job.bindings->set_input(0, {}).code(), Code::kBusy);
  EXPECT_EQ(fake.device->health(), device::Health::kDegraded);
  ASSERT_EQ(events.all().size(), 1U);
  EXPECT_EQ(events.all()[0].core_bits, 1U);
  const std::vector<float> untouched = *memory;
  EXPECT_THAT(untouched, ::testing::Each(-1.0F));
  memory.reset();  // The engine must not write here any more.
  // The core was reset: the next job on it runs while the old one is stuck.
  fake.state->before_run = nullptr;
  const device::Submission next = fake.job(device::CoreSet::of({0}), 7);
  ASSERT_TRUE(fake.queue->run(next).ok());
  EXPECT_EQ(FakeDevice::result(next), 14);
  EXPECT_EQ(fake.state->abandoned, 1);
  gate.open();
  ASSERT_TRUE(completion->wait_released());
  EXPECT_EQ(completion->status().code(), Code::kTimeout);
  EXPECT_TRUE(job.bindings->set_output(0, {}).ok());
  EXPECT_EQ(fake.device->health(), device::Health::kGood);
  const device::DeviceCounters counters = fake.device->counters();
  EXPECT_EQ(counters.abandoned, 1U);
  EXPECT_EQ(counters.resets, 1U);
}

TEST(LaneFailure, JobWithDeadlineCopiesItsResultOutOnSuccess) {
  FakeDevice fake;
  device::Submission job = fake.job();
  std::vector<float> x = {1, 2, 3, 4};
  std::vector<float> y(4, -1);
  ASSERT_TRUE(job.bindings->set_input(0, {x.data(), 16, {1, 4}, nullptr}).ok());
  ASSERT_TRUE(job.bindings->set_output(0, {y.data(), 16, {1, 4}, nullptr}).ok());
  for (const bool direct : {false, true, false}) {
    job.deadline = fake.device->clock()->now() + std::chrono::hours(1);
    job.direct_user_memory = direct;
    x[0] += 1;
    ASSERT_TRUE(fake.queue->run(job).ok());
    EXPECT_THAT(y, ::testing::ElementsAre(2 * x[0], 4, 6, 8));
    EXPECT_EQ(job.bindings->output(0)->data, y.data());
  }
  job.deadline = kNever;
  x[0] = 10;
  ASSERT_TRUE(fake.queue->run(job).ok());
  EXPECT_EQ(y[0], 20);
}

TEST(LaneFailure, QueuedJobTimesOutWithoutARun) {
  auto clock = std::make_shared<VirtualClock>();
  FakeDevice fake(1, on_virtual_clock(clock));
  Gate gate;
  fake.state->hold_runs_at(gate);
  auto running = *fake.queue->submit(fake.job());
  gate.await(1);
  device::Submission job = fake.job();
  job.deadline = clock->now() + milliseconds(1);
  auto queued = *fake.queue->submit(job);
  clock->advance(milliseconds(1));
  EXPECT_EQ(queued->status().code(), Code::kTimeout);
  EXPECT_TRUE(queued->released());
  job.deadline = clock->now();
  EXPECT_EQ((*fake.queue->submit(job))->status().code(), Code::kTimeout);
  gate.open();
  ASSERT_TRUE(running->wait());
  EXPECT_EQ(fake.state->runs, 1);
}

TEST(LaneFailure, ResetAbandonsOnlyWhatRunsOnTheCores) {
  FakeDevice fake(3);
  device::EventLog events;
  ASSERT_TRUE(events.watch(*fake.device).ok());
  Gate gate;
  fake.state->hold_runs_at(gate);
  auto pair = *fake.queue->submit(fake.job(device::CoreSet::of({0, 1})));
  auto other = *fake.queue->submit(fake.job(device::CoreSet::of({2}), 4));
  gate.await(2);
  auto after_it = *fake.queue->submit(fake.job(device::CoreSet::of({0})));
  EXPECT_EQ(fake.device->reset(device::CoreSet::any()).code(), Code::kInvalidArgument);
  ASSERT_TRUE(fake.device->reset(device::CoreSet::of({1})).ok());
  EXPECT_EQ(pair->status().code(), Code::kDeviceReset);
  EXPECT_FALSE(pair->released());
  EXPECT_FALSE(other->done());
  EXPECT_EQ(events.all().size(), 1U);
  gate.open();
  ASSERT_TRUE(other->wait());
  EXPECT_TRUE(other->status().ok());
  ASSERT_TRUE(after_it->wait());
  EXPECT_TRUE(after_it->status().ok());
  ASSERT_TRUE(pair->wait_released());
}

TEST(LaneFailure, ResetEndsABlockingRunWhenTheEngineReturns) {
  FakeDevice fake(1);
  Gate gate;
  fake.state->hold_runs_at(gate);
  Status status;
  std::thread caller([&] { status = fake.queue->run(fake.job()); });
  gate.await(1);
  ASSERT_TRUE(fake.device->reset(device::CoreSet::platform()).ok());
  EXPECT_EQ(fake.state->abandoned, 1);
  auto next = *fake.queue->submit(fake.job());
  gate.await(2);
  gate.open();
  caller.join();
  EXPECT_EQ(status.code(), Code::kDeviceReset);
  ASSERT_TRUE(next->wait());
  EXPECT_TRUE(next->status().ok());
}

TEST(LaneFailure, InjectedHangEndsAtTheDeadlineOnly) {
  auto clock = std::make_shared<VirtualClock>();
  auto faults = std::make_shared<device::ListedFaults>(std::vector{device::Fault::kHang});
  FakeDevice fake(1, on_virtual_clock(clock, faults));
  device::Submission job = fake.job();
  job.deadline = clock->now() + milliseconds(3);
  auto completion = *fake.queue->submit(job);
  faults->await(1);
  clock->advance(milliseconds(3));
  ASSERT_TRUE(completion->wait_released());
  EXPECT_EQ(completion->status().code(), Code::kTimeout);
  EXPECT_TRUE(fake.queue->run(fake.job()).ok());
}

TEST(LaneFailure, InjectedHangOfABlockingRunEndsByReset) {
  auto faults = std::make_shared<device::ListedFaults>(std::vector{device::Fault::kHang});
  FakeDevice fake(1, on_virtual_clock(std::make_shared<VirtualClock>(), faults));
  Status status;
  std::thread caller([&] { status = fake.queue->run(fake.job()); });
  faults->await(1);
  ASSERT_TRUE(fake.device->reset(device::CoreSet::of({0})).ok());
  caller.join();
  EXPECT_EQ(status.code(), Code::kDeviceReset);
}

TEST(LaneFailure, InjectedCrashFailsTheJobAndResetsItsCore) {
  device::LaneOptions options;
  options.fault_point = std::make_shared<device::ListedFaults>(
      std::vector{device::Fault::kCrash, device::Fault::kNone, device::Fault::kCrash});
  FakeDevice fake(1, options);
  device::EventLog events;
  ASSERT_TRUE(events.watch(*fake.device).ok());
  EXPECT_EQ(fake.queue->run(fake.job()).code(), Code::kDeviceReset);
  EXPECT_TRUE(fake.queue->run(fake.job()).ok());
  auto completion = *fake.queue->submit(fake.job());
  ASSERT_TRUE(completion->wait());
  EXPECT_EQ(completion->status().code(), Code::kDeviceReset);
  EXPECT_EQ(fake.device->counters().resets, 2U);
  EXPECT_EQ(fake.state->runs, 1);
}

TEST(LaneFailure, InjectedSlownessAddsTimeOnTheClock) {
  auto clock = std::make_shared<VirtualClock>();
  device::OpenOptions options;
  options.clock = clock;
  const auto faults = std::make_shared<device::ListedFaults>(std::vector{device::Fault::kSlow});
  options.fault_point = faults;
  auto device = *device::open_device("null:rk3566?a=2ms", options);
  device::Image image;
  image.kind = "null";
  image.bytes = as_byte_span("input x f32 1,4\noutput y f32 1,4\n");
  device::Submission job;
  job.executable = *device->prepare(image, {});
  job.bindings = *job.executable->new_bindings();
  auto completion = *(*device->make_queue({}))->submit(job);
  const Duration whole = milliseconds(2) + faults->slow_by();
  clock->advance(whole - milliseconds(1));
  EXPECT_FALSE(completion->done());
  clock->advance(milliseconds(1));
  ASSERT_TRUE(completion->done());
  EXPECT_EQ(completion->record().ended - completion->record().started, whole);
}

TEST(LaneFailure, WhatAnEngineThrowsWhilePreparingIsItsFailure) {
  FakeDevice fake;
  device::Image image;
  image.name = "net";
  fake.state->on_prepare = [] { throw std::runtime_error("the library threw"); };
  const auto failed = fake.device->prepare(image, {});
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code(), Code::kEngineFailed);
  EXPECT_THAT(failed.error().message(), ::testing::HasSubstr("'net'"));
  EXPECT_THAT(failed.error().message(), ::testing::HasSubstr("the library threw"));
  fake.state->on_prepare = [] { throw 7; };
  EXPECT_EQ(fake.device->prepare(image, {}).error().code(), Code::kEngineFailed);
  fake.state->on_prepare = [] { throw std::bad_alloc(); };
  EXPECT_EQ(fake.device->prepare(image, {}).error().code(), Code::kOutOfMemory);
  fake.state->on_prepare = nullptr;
  EXPECT_TRUE(fake.device->prepare(image, {}).has_value());
}

TEST(LaneFailure, ANullProgramOrRequestIsTheEnginesFailure) {
  for (const bool event_driven : {false, true}) {
    FakeDevice fake(1, {}, event_driven);
    const device::Submission job = fake.job();
    fake.state->no_request = true;
    EXPECT_EQ(fake.queue->run(job).code(), Code::kEngineFailed);
    fake.state->no_request = false;
    EXPECT_TRUE(fake.queue->run(job).ok()) << "the next request is tried";
    fake.state->no_program = true;
    const auto none = fake.device->prepare({}, {});
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().code(), Code::kEngineFailed);
    EXPECT_THAT(none.error().message(), ::testing::HasSubstr("'fake'"));
  }
}

}  // namespace
}  // namespace corelane::lanes
