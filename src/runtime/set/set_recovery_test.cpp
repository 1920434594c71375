// Inference sets on a device that is lost and comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "device/registry/testing/listed_faults.h"
#include "runtime/testing/hooked_device.h"
#include "runtime/testing/set_bench.h"

namespace corelane {
namespace {

using device::Fault;
using device::ListedFaults;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::HookedDevice;
using testing::SetBench;

/// The device is lost for 30 ms where a run begins that a loss strikes.
struct LossBench : SetBench {
  explicit LossBench(const std::string& text, std::vector<Fault> faults = {Fault::kLost})
      : SetBench(text, true, std::make_shared<ListedFaults>(std::move(faults))) {}
  /// Until an observer of the device has done what follows from its return.
  SetHandle collected(InferenceSet& set) const {
    for (;;) {
      if (auto done = set.collect(TimePoint{})) return *done;
      std::this_thread::yield();
      clock->advance(milliseconds(1));
    }
  }
};

TEST(SetRecovery, ALossFailsWhatRunsAndSubmissionsUntilTheDeviceIsBack) {
  LossBench bench("null?a=1ms");
  InferenceSet set = bench.set({.size = 2});
  const std::vector<float> x{1, 2, 3, 4};
  ASSERT_TRUE(set.submit({{SetBench::view(x)}, {}}, 1));
  bench.clock->advance(milliseconds(1));
  SetHandle done = set.collect().value();
  EXPECT_EQ(done.status().code(), Code::kDeviceLost);
  const Status refused = set.submit(done, 2);
  EXPECT_EQ(refused.code(), Code::kDeviceLost);
  EXPECT_THAT(refused.to_string(), HasSubstr("injected fault"));
  EXPECT_EQ(set.figures().held, 1U) << "a refused handle stays held";
  bench.clock->advance(milliseconds(30));
  ASSERT_TRUE(set.submit(done, 3).ok());
  bench.clock->advance(milliseconds(1));
  done = set.collect().value();
  EXPECT_TRUE(done.status().ok()) << done.status().to_string();
  EXPECT_EQ(SetBench::result(done), x);
}

TEST(SetRecovery, OnRequestWhatRanIsRunAgainWhenTheDeviceIsBack) {
  LossBench bench("null:rk3566?a=1ms", {Fault::kNone, Fault::kLost});
  InferenceSet set = bench.set({.size = 4, .replay = true, .in_order = true});
  for (std::uint64_t id = 0; id < 4; ++id) {
    const auto first = static_cast<float>(id);
    const std::vector<float> x{first, 1, 2, 3};
    SetHandle handle = set.acquire().value();
    ASSERT_TRUE(handle.context().set_input(0, SetBench::view(x)).ok());
    ASSERT_TRUE(set.submit(handle, id).ok());
  }
  bench.clock->advance(milliseconds(1));
  EXPECT_EQ(bench.device->health(), device::Health::kLost);
  EXPECT_EQ(set.figures().in_flight, 3U);
  for (std::uint64_t id = 0; id < 4; ++id) {
    const SetHandle done = bench.collected(set);
    EXPECT_EQ(done.id(), id);
    EXPECT_TRUE(done.status().ok()) << done.status().to_string();
    EXPECT_EQ(done.attempts(), id == 0 ? 1U : 2U);
    EXPECT_EQ(SetBench::result(done)[0], static_cast<float>(id));
  }
}

TEST(SetRecovery, AReplayUsesUpNoRetry) {
  LossBench bench("null?a=5ms");
  InferenceSet set =
      bench.set({.size = 1, .attempt_time = milliseconds(3), .retries = 1, .replay = true});
  ASSERT_TRUE(set.submit(set.acquire().value(), 1).ok());
  const SetHandle done = bench.collected(set);
  EXPECT_EQ(done.status().code(), Code::kTimeout) << done.status().to_string();
  EXPECT_EQ(done.attempts(), 3U) << "one that was lost, two that took too long";
  EXPECT_THAT(done.status().to_string(), HasSubstr("lost"));
}

TEST(SetRecovery, AReplayThatIsRefusedUsesUpNoRetry) {
  for (const std::uint32_t retries : {0U, 2U}) {
    LossBench bench("null:rk3566?a=5ms");
    bench.program = HookedDevice::program(
        std::make_shared<HookedDevice>(bench.device, [](std::size_t n, const auto&) -> Status {
          if (n != 1 && n != 2) return {};
          return error(Code::kDeviceLost, "lost again before the replay");
        }));
    InferenceSet set =
        bench.set({.size = 1, .attempt_time = milliseconds(3), .retries = retries, .replay = true});
    ASSERT_TRUE(set.submit(set.acquire().value(), 1).ok());
    const SetHandle done = bench.collected(set);
    EXPECT_EQ(done.status().code(), Code::kTimeout) << done.status().to_string();
    EXPECT_EQ(done.attempts(), 2 + retries) << "one that was lost, one that took too long, retries";
  }
}

TEST(SetRecovery, AReplayWaitsUntilTheDevicesLineHasRoom) {
  LossBench bench("null:rk3566?a=1ms");
  std::atomic<int> refused{0};
  bench.program = HookedDevice::program(
      std::make_shared<HookedDevice>(bench.device, [&](std::size_t n, const auto&) -> Status {
        if (n == 0 || n > 3) return {};
        ++refused;
        return error(Code::kBusy, "the line is full");
      }));
  InferenceSet set = bench.set({.size = 1, .replay = true});
  ASSERT_TRUE(set.submit(set.acquire().value(), 1).ok());
  const SetHandle done = bench.collected(set);
  EXPECT_TRUE(done.status().ok()) << done.status().to_string();
  EXPECT_EQ(refused, 3);
}

TEST(SetRecovery, ADeviceThatIsLostAtEachRunEndsAnInference) {
  LossBench bench("null?a=1ms", std::vector<Fault>(100, Fault::kLost));
  InferenceSet set = bench.set({.size = 1, .replay = true});
  ASSERT_TRUE(set.submit(set.acquire().value(), 1).ok());
  const SetHandle done = bench.collected(set);
  EXPECT_EQ(done.status().code(), Code::kDeviceLost);
  EXPECT_EQ(done.attempts(), 9U);
}

TEST(SetRecovery, WhatWaitsForTheDeviceCanBeCancelledAndEndsWithTheSet) {
  LossBench bench("null:rk3566?a=1ms", {Fault::kNone, Fault::kLost});
  InferenceSet set = bench.set({.size = 3, .replay = true});
  for (std::uint64_t id = 0; id < 3; ++id) ASSERT_TRUE(set.submit(set.acquire().value(), id).ok());
  bench.clock->advance(milliseconds(1));
  EXPECT_TRUE(set.cancel(1));
  const SetHandle cancelled = set.collect_id(1).value();
  EXPECT_EQ(cancelled.status().code(), Code::kCancelled);
  EXPECT_EQ(set.figures().in_flight, 1U);
  EXPECT_FALSE(set.drain(bench.clock->now()));
  set.shutdown();
  EXPECT_TRUE(set.drain(bench.clock->now()));
  EXPECT_TRUE(set.collect()->status().ok()) << "it ran before the loss";
  EXPECT_EQ(set.collect()->status().code(), Code::kCancelled);
  EXPECT_EQ(set.figures().available + set.figures().held, 3U);
}

TEST(SetRecovery, ASetMayGoWhileItsWorkWaitsForTheDevice) {
  LossBench bench("null:rk3566?a=1ms", {Fault::kNone, Fault::kLost});
  std::atomic<int> called{0};
  {
    InferenceSet set = bench.set({.size = 2, .replay = true});
    for (std::uint64_t id = 0; id < 2; ++id)
      ASSERT_TRUE(set.submit(set.acquire().value(), id, [&](const SetHandle&) { ++called; }).ok());
    bench.clock->advance(milliseconds(1));
    EXPECT_EQ(called, 1);
  }
  EXPECT_EQ(called, 2);
}

/// Strikes the first run after each span of time and some runs: on a busy machine the time may pass
/// before the device has taken a replay.
class TimedLoss final : public device::FaultPoint {
 public:
  TimedLoss(std::shared_ptr<VirtualClock> clock, Duration every)
      : clock_(std::move(clock)), every_(every), next_(every.count()) {}
  Fault at_run(std::uint64_t, std::uint64_t) override {
    if (++runs_ < kLeastRuns) return Fault::kNone;
    std::int64_t due = next_;
    const std::int64_t now = clock_->now().time_since_epoch().count();
    if (now < due || !next_.compare_exchange_strong(due, now + every_.count())) return Fault::kNone;
    runs_ = 0;
    return Fault::kLost;
  }
  Duration slow_by() const override { return {}; }
  Duration lost_for() const override { return milliseconds(100); }

 private:
  const std::shared_ptr<VirtualClock> clock_;
  static constexpr int kLeastRuns = 50;

  const Duration every_;
  std::atomic<std::int64_t> next_;
  std::atomic<int> runs_{0};
};

struct Load {
  std::size_t size, activations;
  bool replay;
};

class SetUnderLosses : public ::testing::TestWithParam<Load> {};

INSTANTIATE_TEST_SUITE_P(Loads, SetUnderLosses,
                         ::testing::Values(Load{1, 1, true}, Load{4, 10, false}, Load{4, 10, true},
                                           Load{16, 2, true}),
                         [](const auto& param) {
                           return std::to_string(param.param.size) + "x" +
                                  std::to_string(param.param.activations) +
                                  (param.param.replay ? "Replayed" : "");
                         });

/// CORELANE_TEST_INFERENCES: how many, for a longer run. Else enough for two losses: one handle
/// goes from thread to thread for each inference, which takes long where others use the CPU.
std::uint64_t inferences(const Load& load) {
  const char* given = std::getenv("CORELANE_TEST_INFERENCES");
  if (given != nullptr) return std::strtoull(given, nullptr, 10);
  return load.size * load.activations == 1 ? 600 : 2000;
}

/// A loss every two seconds of the device's time, and one failure in a hundred runs.
TEST_P(SetUnderLosses, EveryIdIsCollectedOnceWithItsOwnResult) {
  constexpr std::uint64_t kThreads = 2;
  const Load& load = GetParam();
  const auto clock = std::make_shared<VirtualClock>();
  const auto faults = std::make_shared<TimedLoss>(clock, seconds(2));
  SetBench bench("null:generic:4?a=8ms&fail=100", clock, faults);
  InferenceSet set =
      bench.set({.size = load.size, .activations = load.activations, .replay = load.replay});
  const std::size_t handles = load.size * load.activations;
  std::vector<std::atomic<int>> seen(inferences(load));
  std::atomic<std::uint64_t> next{0};
  std::atomic<std::uint64_t> collected{0};
  std::atomic<std::uint64_t> ended{0};
  std::atomic<std::uint64_t> lost{0};
  std::atomic<std::uint64_t> failed{0};
  std::atomic<int> wrong{0};
  std::mutex guard;
  std::string why_lost;

  // This thread is a user, too: the clock below may run on by seconds before the second thread has
  // begun, and the set refuses one that waits forever as its only user.
  ASSERT_TRUE(set.release(set.acquire().value()).ok());
  const auto submit = [&] {
    for (std::uint64_t id = next++; id < seen.size(); id = next++) {
      SetHandle handle = set.acquire().value();
      const auto value = static_cast<float>(id);
      const std::vector<float> x{value, value + 1, value + 2, value + 3};
      // Both fail while the device is lost.
      const auto try_it = [&] {
        Status sent = handle.context().set_input(0, SetBench::view(x));
        if (sent.ok()) sent = set.submit(handle, id);
        if (!sent.ok() && sent.code() != Code::kDeviceLost) ++wrong;
        return sent.ok();
      };
      while (!try_it()) std::this_thread::yield();
    }
  };
  const auto collect = [&] {
    while (collected++ < seen.size()) {
      const SetHandle done = set.collect().value();
      ++seen[done.id()];
      const auto value = static_cast<float>(done.id());
      const Code code = done.status().code();
      if (code == Code::kDeviceLost) {
        ++lost;
        const std::lock_guard lock(guard);
        why_lost = done.status().to_string();
      } else if (code != Code::kOk) {
        ++failed;
      } else if (SetBench::result(done) !=
                 std::vector<float>{value, value + 1, value + 2, value + 3}) {
        ++wrong;
      }
      const SetFigures now = set.figures();
      if (now.available + now.in_flight + now.completed + now.held != handles) ++wrong;
      if (!set.release(done).ok()) ++wrong;
      ++ended;
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back(submit);
    threads.emplace_back(collect);
  }
  // To the end of a job where one runs. Else threads have to act first, for which time hardly goes
  // on: seconds of it could pass before they run on a busy machine, and the device would be lost
  // again before it had taken a replay.
  constexpr int kYields = 20;
  while (ended < seen.size()) {
    for (int i = 0; i < kYields && clock->next_timer() == kNever; ++i) std::this_thread::yield();
    clock->advance_to(std::min(clock->next_timer(), clock->now() + milliseconds(1)));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (const auto& count : seen) ASSERT_EQ(count, 1);
  EXPECT_GT(failed, 0U);
  if (load.replay) EXPECT_EQ(lost, 0U) << why_lost;
  EXPECT_EQ(set.figures().available, handles);
}

/// Four cores of 1 ms, eight handles that callbacks submit again.
TEST(SetRecovery, TheRateIsBackWhenTheDeviceIs) {
  const auto clock = std::make_shared<VirtualClock>();
  SetBench bench("null:generic:4?a=1ms", clock, std::make_shared<TimedLoss>(clock, seconds(2)));
  InferenceSet set = bench.set({.size = 8, .replay = true});
  std::atomic<int> completed{0};
  std::vector<SetHandle> refused;
  std::function<void(SetHandle)> again = [&](const SetHandle& handle) {
    ++completed;
    const Status status = handle.status();
    EXPECT_TRUE(status.ok() || status.code() == Code::kCancelled) << status.to_string();
    if (!set.submit(handle, 0, again).ok()) refused.push_back(handle);
  };
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(set.submit(set.acquire().value(), 0, again).ok());
  const auto completed_in = [&](Duration time) {
    const int before = completed;
    for (Duration spent{}; spent < time; spent += milliseconds(1)) clock->advance(milliseconds(1));
    return completed - before;
  };
  EXPECT_EQ(completed_in(seconds(1)), 4000);
  while (bench.device->health() != device::Health::kLost) clock->advance(milliseconds(1));
  const std::uint64_t submitted = bench.device->counters().submitted;
  clock->advance(milliseconds(100));
  // A thread of the device starts them anew.
  const std::size_t replayed = 8 - refused.size();
  while (bench.device->counters().submitted < submitted + replayed) std::this_thread::yield();
  for (const SetHandle& handle : refused) EXPECT_TRUE(set.submit(handle, 0, again).ok());
  EXPECT_EQ(completed_in(seconds(1)), 4000);
  set.shutdown();
  clock->run_all();
}

}  // namespace
}  // namespace corelane
