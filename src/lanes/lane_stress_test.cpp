#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "lanes/testing/lane_engine_fake.h"

namespace corelane::lanes {
namespace {

/// Eight threads on three cores, with every kind of call mixed: each job completes exactly once,
/// each successful one with its own result, and no core ever has two runs.
TEST(LaneStress, EightThreadsOnThreeCores) {
  FakeDevice fake(3);
  std::atomic<int> completions{0};
  std::atomic<int> submissions{0};
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<device::Submission> jobs;
    for (int i = 0; i < 4; ++i) jobs.push_back(fake.job());
    std::vector<std::shared_ptr<device::Completion>> pending(jobs.size());
    for (int round = 0; round < 300; ++round) {
      const std::size_t slot = random() % jobs.size();
      device::Submission& job = jobs[slot];
      if (pending[slot] != nullptr) {
        ASSERT_TRUE(pending[slot]->wait_released());
        if (pending[slot]->status().ok()) {
          const auto* x = static_cast<const float*>(job.bindings->input(0)->data);
          EXPECT_EQ(FakeDevice::result(job), 2 * x[3]);
        }
        pending[slot] = nullptr;
      }
      static_cast<float*>(job.bindings->input(0)->data)[3] = static_cast<float>(random() % 1000);
      job.priority = static_cast<std::int32_t>(random() % 3);
      job.cores = random() % 3 == 0   ? device::CoreSet::mask(1 + random() % 7)
                  : random() % 4 == 0 ? device::CoreSet::any(2)
                                      : device::CoreSet::any();
      job.deadline =
          random() % 3 == 0 ? fake.device->clock()->now() + std::chrono::hours(1) : kNever;
      ++submissions;
      if (random() % 2 == 0) {
        ASSERT_TRUE(fake.queue->run(job).ok());
        ++completions;
        continue;
      }
      pending[slot] = *fake.queue->submit(job);
      pending[slot]->on_done([&](device::Completion&) { ++completions; });
      if (random() % 8 == 0) pending[slot]->cancel();
    }
    for (const auto& completion : pending)
      EXPECT_TRUE(completion == nullptr || completion->wait_released());
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 8; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(fake.queue->drain());
  // A waiter may return before the callback of its job has run; the last callbacks end soon.
  while (completions != submissions) std::this_thread::yield();
  EXPECT_FALSE(fake.state->overlap);
  const device::DeviceCounters counters = fake.device->counters();
  EXPECT_EQ(counters.submitted, counters.completed);
  EXPECT_EQ(counters.submitted, static_cast<std::uint64_t>(submissions));
}

/// Resets from one thread while others run: nothing is lost, nothing completes twice.
TEST(LaneStress, ResetsAmongRunningJobs) {
  FakeDevice fake(3);
  std::atomic<bool> stop{false};
  std::atomic<int> done{0};
  std::atomic<int> submitted{0};
  const auto work = [&] {
    device::Submission job = fake.job();
    for (int i = 0; i < 200; ++i) {
      ++submitted;
      if (i % 2 == 0) {
        const Status status = fake.queue->run(job);
        EXPECT_TRUE(status.ok() || status.code() == Code::kDeviceReset) << status.to_string();
        ++done;
      } else {
        auto completion = *fake.queue->submit(job);
        completion->on_done([&](device::Completion&) { ++done; });
        ASSERT_TRUE(completion->wait_released());
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  std::thread resetter([&] {
    while (!stop) EXPECT_TRUE(fake.device->reset(device::CoreSet::of({1, 2})).ok());
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  resetter.join();
  while (done != submitted) std::this_thread::yield();
  EXPECT_EQ(fake.device->health(), device::Health::kGood);
  EXPECT_TRUE(fake.queue->run(fake.job()).ok());
}

TEST(LaneStress, DevicesComeAndGo) {
  for (int i = 0; i < 100; ++i) {
    auto fake = std::make_unique<FakeDevice>(2);
    std::vector<std::shared_ptr<device::Completion>> completions;
    std::atomic<int> done{0};
    for (int j = 0; j < 6; ++j) {
      completions.push_back(*fake->queue->submit(fake->job()));
      completions.back()->on_done([&](device::Completion&) { ++done; });
    }
    fake.reset();
    completions.clear();
    while (done != 6) std::this_thread::yield();
  }
}

}  // namespace
}  // namespace corelane::lanes
