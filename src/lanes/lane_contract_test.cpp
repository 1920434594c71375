// Promises of the contract that hold when several things happen at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "corelane/base/log.h"
#include "lanes/testing/lane_engine_fake.h"

namespace corelane::lanes {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(LaneContract, BlockingRunOnDirectMemoryReturnsWhenTheEngineLetGo) {
  auto clock = std::make_shared<VirtualClock>();
  FakeDevice fake(1, on_virtual_clock(clock));
  Gate gate;
  std::atomic<bool> left = false;
  fake.state->before_run = [&](std::uint64_t) {
    gate.pass();
    left = true;
    return Status();
  };
  device::Submission job = fake.job();
  job.deadline = clock->now() + milliseconds(3);
  job.direct_user_memory = true;
  Status status;
  bool left_at_return = false;
  std::thread caller([&] {
    status = fake.queue->run(job);
    left_at_return = left;
  });
  gate.await(1);
  clock->advance(milliseconds(3));
  EXPECT_EQ(fake.device->counters().abandoned, 1U);
  gate.open();
  caller.join();
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_TRUE(left_at_return);
}

TEST(LaneContract, InputsAreReadWhenTheFencesAreSignalled) {
  FakeDevice fake(1);
  device::Submission job = fake.job();
  std::vector<float> x(4, 1.0F);
  ASSERT_TRUE(job.bindings->set_input(0, {x.data(), 16, {1, 4}, nullptr}).ok());
  auto fence = std::make_shared<device::Fence>();
  job.wait = {fence};
  job.deadline = fake.device->clock()->now() + std::chrono::hours(1);
  auto completion = *fake.queue->submit(job);
  std::fill(x.begin(), x.end(), 21.0F);
  fence->signal();
  ASSERT_TRUE(completion->wait());
  ASSERT_TRUE(completion->status().ok());
  EXPECT_EQ(FakeDevice::result(job), 42);
}

TEST(LaneContract, KeptInputIsNewWheneverItIsSetAndOnlyThen) {
  FakeDevice fake(1);
  fake.state->keeps_input = true;
  device::Submission job = fake.job();
  std::vector<float> x(4, 1.0F);
  for (int set = 1; set <= 2; ++set) {
    const int renewed = fake.state->renewed;
    ASSERT_TRUE(job.bindings->set_input(0, {x.data(), 16, {1, 4}, nullptr}).ok());
    EXPECT_EQ(fake.state->renewed, renewed + 1);
    const int binds = fake.state->binds;
    ASSERT_TRUE(fake.queue->run(job).ok());
    EXPECT_GT(fake.state->binds, binds);
    const int bound = fake.state->binds;
    ASSERT_TRUE(fake.queue->run(job).ok());
    EXPECT_EQ(fake.state->binds, bound);
    EXPECT_EQ(fake.state->renewed, renewed + 1);
  }
}

TEST(LaneContract, ShadowOfAKeptInputIsFilledWhenItIsSet) {
  FakeDevice fake(1);
  fake.state->keeps_input = true;
  device::Submission job = fake.job();
  job.deadline = fake.device->clock()->now() + std::chrono::hours(1);
  std::vector<float> x(4, 1.0F);
  const auto set = [&] { return job.bindings->set_input(0, {x.data(), 16, {1, 4}, nullptr}); };
  ASSERT_TRUE(set().ok());
  ASSERT_TRUE(fake.queue->run(job).ok());
  std::fill(x.begin(), x.end(), 21.0F);
  ASSERT_TRUE(fake.queue->run(job).ok());
  EXPECT_EQ(FakeDevice::result(job), 2);
  const int renewed = fake.state->renewed;
  ASSERT_TRUE(set().ok());
  ASSERT_TRUE(fake.queue->run(job).ok());
  EXPECT_EQ(FakeDevice::result(job), 42);
  // Once for the memory that was set, once for the shadow.
  EXPECT_EQ(fake.state->renewed, renewed + 2);
}

TEST(LaneContract, KeptInputThatWaitsForFencesIsNewWhenTheyAreSignalled) {
  FakeDevice fake(1);
  fake.state->keeps_input = true;
  device::Submission job = fake.job();
  std::vector<float> x(4, 1.0F);
  ASSERT_TRUE(job.bindings->set_input(0, {x.data(), 16, {1, 4}, nullptr}).ok());
  const int renewed = fake.state->renewed;
  // Once: what was not set again is not new for the next job.
  for (int i = 0; i < 2; ++i) {
    auto fence = std::make_shared<device::Fence>();
    job.wait = {fence};
    auto completion = *fake.queue->submit(job);
    EXPECT_EQ(fake.state->renewed, renewed + i);
    fence->signal();
    ASSERT_TRUE(completion->wait_released());
    ASSERT_TRUE(completion->status().ok());
    EXPECT_EQ(fake.state->renewed, renewed + 1);
  }
}

TEST(LaneContract, SettingAKeptInputLetsGoOfTheOldOneOnAllCores) {
  FakeDevice fake(2);
  fake.state->keeps_input = true;
  device::Submission job = fake.job();
  auto old = std::make_shared<std::vector<float>>(4, 1.0F);
  const std::weak_ptr<void> alive = old;
  std::vector<float> x(4, 21.0F);
  float* const data = old->data();
  ASSERT_TRUE(job.bindings->set_input(0, {data, 16, {1, 4}, std::move(old)}).ok());
  for (const std::size_t core : {0U, 1U}) {
    job.cores = device::CoreSet::of({core});
    ASSERT_TRUE(fake.queue->run(job).ok());
  }
  ASSERT_TRUE(job.bindings->set_input(0, {x.data(), 16, {1, 4}, nullptr}).ok());
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(fake.state->let_go, 2);
  ASSERT_TRUE(fake.queue->run(job).ok());
  EXPECT_EQ(FakeDevice::result(job), 42);
}

TEST(LaneContract, InputsAreCopiedWithoutTheDevicesLock) {
  FakeDevice fake(1);
  fake.state->keeps_input = true;
  device::Submission job = fake.job();
  std::vector<float> x(4, 21.0F);
  ASSERT_TRUE(job.bindings->set_input(0, {x.data(), 16, {1, 4}, nullptr}).ok());
  auto fence = std::make_shared<device::Fence>();
  job.wait = {fence};
  job.deadline = fake.device->clock()->now() + std::chrono::hours(1);
  auto completion = *fake.queue->submit(job);
  int asked = 0;
  fake.state->on_renew = [&] {
    asked += fake.device->counters().submitted == 1 ? 1 : 0;
    EXPECT_FALSE(completion->done());
  };
  fence->signal();
  // The memory that was set, and its shadow.
  EXPECT_EQ(asked, 2);
  ASSERT_TRUE(completion->wait());
  EXPECT_EQ(FakeDevice::result(job), 42);
}

TEST(LaneContract, CancelWaitsForACopyOfTheInputs) {
  FakeDevice fake(1);
  fake.state->keeps_input = true;
  device::Submission job = fake.job();
  std::vector<float> x(4, 21.0F);
  ASSERT_TRUE(job.bindings->set_input(0, {x.data(), 16, {1, 4}, nullptr}).ok());
  auto fence = std::make_shared<device::Fence>();
  job.wait = {fence};
  auto completion = *fake.queue->submit(job);
  Gate gate;
  fake.state->on_renew = [&] { gate.pass(); };
  std::thread signaller([&] { fence->signal(); });
  gate.await(1);
  std::atomic<bool> copied = false;
  std::thread canceller([&] {
    const bool cancelled = completion->cancel();
    EXPECT_TRUE(copied);
    EXPECT_EQ(cancelled, completion->wait() && completion->status().code() == Code::kCancelled);
  });
  EXPECT_FALSE(completion->done());
  copied = true;
  gate.open();
  signaller.join();
  canceller.join();
}

TEST(LaneContract, JobWhoseEngineIsLostRunsAgainOnceOnANewRequest) {
  for (const bool event_driven : {false, true}) {
    for (const int lost : {1, 2}) {
      FakeDevice fake(1, {}, event_driven);
      device::Submission job = fake.job({}, 21);
      std::vector<float> y(4);
      ASSERT_TRUE(job.bindings->set_output(0, {y.data(), 16, {1, 4}, nullptr}).ok());
      for (const bool blocking : {true, false}) {
        const int requests = fake.state->requests;
        fake.state->lose = lost;
        job.deadline = blocking ? kNever : fake.device->clock()->now() + std::chrono::hours(1);
        Status status;
        if (blocking) {
          status = fake.queue->run(job);
        } else {
          auto completion = *fake.queue->submit(job);
          ASSERT_TRUE(completion->wait_released());
          status = completion->status();
        }
        EXPECT_EQ(status.code(), lost == 1 ? Code::kOk : Code::kDeviceLost);
        EXPECT_GT(fake.state->requests, requests);
        EXPECT_EQ(y[0], lost == 1 ? 42 : 0);
      }
      EXPECT_EQ(fake.device->counters().resets, 2U * static_cast<unsigned>(lost));
      EXPECT_EQ(fake.device->counters().completed, 2U);
      EXPECT_TRUE(fake.queue->run(job).ok());
    }
  }
}

TEST(LaneContract, CallbackOfATimedOutJobDoesNotHoldUpOtherDeadlines) {
  FakeDevice fake(2);
  Gate engine;
  Gate callback;
  fake.state->hold_runs_at(engine);
  const auto late = [&](std::size_t core, Duration after) {
    device::Submission job = fake.job(device::CoreSet::of({core}));
    job.deadline = fake.device->clock()->now() + after;
    return *fake.queue->submit(job);
  };
  std::shared_ptr<device::Completion> first;
  bool over = true;
  // A job that was over before the callback was added calls it here, where it must not wait.
  for (Duration after = milliseconds(1); over; after *= 4) {
    over = false;
    first = late(0, after);
    first->on_done([&, here = std::this_thread::get_id()](device::Completion&) {
      if (std::this_thread::get_id() == here)
        over = true;
      else
        callback.pass();
    });
  }
  callback.await(1);
  auto second = late(1, milliseconds(1));
  ASSERT_TRUE(second->wait());
  EXPECT_EQ(second->status().code(), Code::kTimeout);
  callback.open();
  callback.await(0);
  engine.open();
  EXPECT_TRUE(first->wait_released());
  EXPECT_TRUE(second->wait_released());
}

TEST(LaneContract, BoundedWaitDoesNotRunTheJob) {
  FakeDevice fake(1);
  Gate gate;
  fake.state->hold_runs_at(gate);
  auto completion = *fake.queue->submit(fake.job());
  EXPECT_FALSE(completion->wait(TimePoint{}));
  EXPECT_FALSE(completion->wait_released(TimePoint{}));
  gate.open();
  EXPECT_TRUE(completion->wait());
}

TEST(LaneContract, JobsAfterOneThatResidencyEndsGoOn) {
  FakeDevice fake(2);
  Gate gate;
  fake.state->before_run = [&](std::uint64_t bits) {
    if (bits == 1) gate.pass();
    return Status();
  };
  auto running = *fake.queue->submit(fake.job(device::CoreSet::of({0})));
  gate.await(1);
  auto both = *fake.queue->submit(fake.job(device::CoreSet::first(2)));
  auto after_it = *fake.queue->submit(fake.job(device::CoreSet::of({1})));
  const auto other = *fake.device->prepare({}, {});
  const auto residence =
      other->make_resident(device::CoreSet::of({0}), device::Residency::kExclusive);
  ASSERT_TRUE(residence.has_value());
  ASSERT_TRUE(both->wait());
  EXPECT_EQ(both->status().code(), Code::kOutOfCores);
  EXPECT_TRUE(after_it->wait());
  EXPECT_TRUE(after_it->status().ok());
  gate.open();
  EXPECT_TRUE(running->wait());
}

/// Takes the log for a test.
class LogLines {
 public:
  explicit LogLines(std::function<void()> also = {}) {
    log::set_callback(
        [this, also = std::move(also)](log::Level, std::string_view, std::string_view text) {
          if (also) also();
          std::lock_guard guard(mutex_);
          text_ += std::string(text) + "\n";
        });
  }
  ~LogLines() { log::set_callback({}); }
  std::string text() {
    std::lock_guard guard(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

class BadArbiter final : public device::Arbiter {
 public:
  explicit BadArbiter(bool throws) : throws_(throws) {}
  std::optional<device::Grant> pick(std::span<const device::WaitingJob>,
                                    std::span<const device::CoreState>, TimePoint) const override {
    if (throws_) throw std::runtime_error("no idea");
    return device::Grant{0, 0xF0};
  }

 private:
  bool throws_;
};

TEST(LaneContract, ArbiterThatThrowsOrErrsIsReplacedByFirstInFirstOut) {
  for (const bool throws : {true, false}) {
    FakeDevice fake(2);
    // The log's callback may call the device.
    LogLines lines([&] { EXPECT_EQ(fake.device->health(), device::Health::kGood); });
    ASSERT_TRUE(fake.device->set_arbiter(std::make_shared<BadArbiter>(throws)).ok());
    const device::Submission job = fake.job();
    EXPECT_TRUE(fake.queue->run(job).ok());
    EXPECT_EQ(FakeDevice::result(job), 2);
    EXPECT_THAT(lines.text(), HasSubstr(throws ? "no idea" : "0xf0"));
  }
}

TEST(LaneContract, ShapeWhoseSizeOverflowsIsRefused) {
  FakeDevice fake(1);
  device::PrepareOptions options;
  options.input_shapes = {Shape{Shape::kOpen, Shape::kOpen}};
  const auto bindings = *(*fake.device->prepare({}, options))->new_bindings();
  std::vector<float> x(4);
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_EQ(bindings->set_input(0, {x.data(), 16, Shape{huge, huge}, nullptr}).code(),
            Code::kInvalidArgument);
  EXPECT_TRUE(bindings->set_input(0, {x.data(), 16, Shape{2, 2}, nullptr}).ok());
}

TEST(LaneContract, QueueIsNamedInWhatItsJobsReport) {
  auto clock = std::make_shared<VirtualClock>();
  FakeDevice fake(1, on_virtual_clock(clock));
  device::QueueOptions named;
  named.name = "camera";
  const auto queue = *fake.device->make_queue(named);
  device::Submission job = fake.job();
  job.wait = {std::make_shared<device::Fence>()};
  job.deadline = clock->now() + milliseconds(1);
  auto completion = *queue->submit(job);
  clock->advance(milliseconds(1));
  EXPECT_THAT(completion->status().message(), HasSubstr("'camera'"));
}

}  // namespace
}  // namespace corelane::lanes
