// Submissions that wait for room in a full line.
#include <gtest/gtest.h>

#include <future>

#include "device/registry/testing/listed_faults.h"
#include "device/registry/testing/watched_clock.h"
#include "lanes/testing/lane_engine_fake.h"

namespace corelane::lanes {
namespace {

using device::Fault;
using device::WatchedClock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr TimePoint at(Duration time) { return TimePoint{time}; }

/// One job may wait, and does, for a fence.
struct FullLine {
  explicit FullLine(std::vector<Fault> faults = {})
      : fake(2, options(std::make_shared<device::ListedFaults>(std::move(faults)))) {
    waiting = *fake.queue->submit(blocked());
  }
  device::LaneOptions options(std::shared_ptr<device::FaultPoint> faults) const {
    device::LaneOptions made;
    made.clock = clock;
    made.depth_limit = 1;
    made.fault_point = std::move(faults);
    return made;
  }
  device::Submission blocked(TimePoint room_until = {}) const {
    device::Submission job = fake.job();
    job.wait = {gate};
    job.room_until = room_until;
    return job;
  }
  /// In a thread of its own, which waits for room when this returns.
  std::future<Result<std::shared_ptr<device::Completion>>> submit(device::Submission job) const {
    auto sent = std::async(std::launch::async,
                           [this, job = std::move(job)] { return fake.queue->submit(job); });
    clock->await(1);
    return sent;
  }

  std::shared_ptr<WatchedClock> clock = std::make_shared<WatchedClock>();
  std::shared_ptr<device::Fence> gate = std::make_shared<device::Fence>(clock);
  FakeDevice fake;
  std::shared_ptr<device::Completion> waiting;
};

/// Starts a job where two wait.
class Pairs final : public device::Arbiter {
 public:
  std::optional<device::Grant> pick(std::span<const device::WaitingJob> waiting,
                                    std::span<const device::CoreState> cores,
                                    TimePoint /*now*/) const override {
    if (waiting.size() < 2) return std::nullopt;
    for (std::size_t core = 0; core < cores.size(); ++core)
      if (cores[core].usable && !cores[core].busy)
        return device::Grant{0, std::uint64_t{1} << core};
    return std::nullopt;
  }
};

TEST(LaneRoom, AJobThatStartsBecauseOfASubmissionMakesRoomForIt) {
  device::LaneOptions options;
  options.depth_limit = 1;
  FakeDevice fake(1, options);
  ASSERT_TRUE(fake.device->set_arbiter(std::make_shared<Pairs>()).ok());
  const auto first = fake.queue->submit(fake.job());
  ASSERT_TRUE(first) << first.error().to_string();
  const auto second = fake.queue->submit(fake.job());
  ASSERT_TRUE(second) << second.error().to_string();
  EXPECT_TRUE((*first)->wait()) << "a thread was woken for it";
  EXPECT_TRUE((*second)->cancel());
}

TEST(LaneRoom, WithoutATimeAFullLineRefusesAtOnce) {
  const FullLine line;
  EXPECT_EQ(line.fake.queue->submit(line.blocked()).error().code(), Code::kBusy);
  line.clock->advance(milliseconds(5));
  EXPECT_EQ(line.fake.queue->submit(line.blocked(at(milliseconds(5)))).error().code(), Code::kBusy)
      << "the time has come";
  line.gate->signal();
  EXPECT_TRUE(line.waiting->wait());
}

TEST(LaneRoom, ASubmissionEntersOnceAWaitingJobsFenceFails) {
  const FullLine line;
  device::Submission job = line.fake.job();
  job.room_until = at(milliseconds(10));
  job.wait = {std::make_shared<device::Fence>(line.clock)};
  auto sent = line.submit(job);
  line.gate->signal(error(Code::kIo, "it will not come"));
  const auto entered = sent.get();
  ASSERT_TRUE(entered) << entered.error().to_string();
  EXPECT_EQ(line.clock->now(), at(Duration{})) << "the time did not have to pass";
  job.wait[0]->signal();
  EXPECT_TRUE((*entered)->wait());
  EXPECT_TRUE((*entered)->status().ok());
  EXPECT_EQ(line.waiting->status().code(), Code::kIo);
}

TEST(LaneRoom, ASubmissionEntersOnceAWaitingJobStarts) {
  const FullLine line;
  auto sent = line.submit(line.blocked(at(milliseconds(10))));
  line.gate->signal();
  const auto job = sent.get();
  ASSERT_TRUE(job) << job.error().to_string();
  EXPECT_TRUE((*job)->wait());
  EXPECT_TRUE((*job)->status().ok());
  EXPECT_EQ(line.clock->now(), TimePoint{});
}

TEST(LaneRoom, ASubmissionEntersOnceAWaitingJobIsCancelled) {
  const FullLine line;
  auto sent = line.submit(line.blocked(at(milliseconds(10))));
  EXPECT_TRUE(line.waiting->cancel());
  const auto job = sent.get();
  ASSERT_TRUE(job) << job.error().to_string();
  line.gate->signal();
  EXPECT_TRUE((*job)->wait());
}

TEST(LaneRoom, ASubmissionThatIsGivenUpTakesNoRoomThatComesThen) {
  const FullLine line;
  const auto given_up = std::make_shared<std::atomic<bool>>(false);
  device::Submission job = line.blocked(at(milliseconds(10)));
  job.give_up = given_up;
  auto sent = line.submit(job);
  given_up->store(true);
  EXPECT_TRUE(line.waiting->cancel());
  const auto refused = sent.get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kBusy);
  line.gate->signal();
}

TEST(LaneRoom, ABlockingRunWaitsForRoomToo) {
  const FullLine line;
  auto ran = std::async(std::launch::async,
                        [&] { return line.fake.queue->run(line.blocked(at(milliseconds(10)))); });
  line.clock->await(1);
  line.gate->signal();
  EXPECT_TRUE(ran.get().ok());
}

TEST(LaneRoom, AtItsTimeItIsRefusedAndNothingOfItStays) {
  const FullLine line;
  device::Submission more = line.blocked(at(milliseconds(10)));
  auto sent = line.submit(more);
  line.clock->advance(milliseconds(10) - nanoseconds(1));
  line.clock->await(1);
  line.clock->advance(nanoseconds(1));
  EXPECT_EQ(sent.get().error().code(), Code::kBusy);
  EXPECT_EQ(line.fake.queue->depth(), 1U);
  EXPECT_TRUE(more.bindings->set_input(0, {}).ok()) << "the bindings are free";
  line.gate->signal();
  EXPECT_TRUE(line.waiting->wait());
}

TEST(LaneRoom, ADeadlineThatComesFirstEndsTheJob) {
  const FullLine line;
  device::Submission more = line.blocked(at(milliseconds(10)));
  more.deadline = at(milliseconds(3));
  auto sent = line.submit(more);
  line.clock->advance(milliseconds(3));
  const auto job = sent.get();
  ASSERT_TRUE(job) << job.error().to_string();
  EXPECT_EQ((*job)->status().code(), Code::kTimeout);
  line.gate->signal();
  EXPECT_TRUE(line.waiting->wait());
}

TEST(LaneRoom, TheLossOfTheDeviceEndsTheWait) {
  const FullLine line({Fault::kLost});
  auto sent = line.submit(line.blocked(at(milliseconds(10))));
  EXPECT_EQ(line.fake.queue->run(line.fake.job()).code(), Code::kDeviceLost);
  EXPECT_EQ(sent.get().error().code(), Code::kDeviceLost);
  EXPECT_EQ(line.clock->now(), TimePoint{});
  EXPECT_EQ(line.fake.device->counters().losses, 1U);
  line.clock->run_all();
}

TEST(LaneRoom, OfManyThatWaitAllEnterInTheEnd) {
  const FullLine line;
  std::vector<std::future<Result<std::shared_ptr<device::Completion>>>> sent;
  for (int i = 0; i < 8; ++i)
    sent.push_back(std::async(std::launch::async, [&] {
      return line.fake.queue->submit(line.blocked(at(milliseconds(10))));
    }));
  line.clock->await(8);
  line.gate->signal();
  for (auto& one : sent) {
    const auto job = one.get();
    ASSERT_TRUE(job) << job.error().to_string();
    EXPECT_TRUE((*job)->wait());
  }
}

}  // namespace
}  // namespace corelane::lanes
