// Inference sets that many threads use, and that end while they do.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <future>
#include <thread>

#include "runtime/testing/hooked_device.h"
#include "runtime/testing/set_bench.h"

namespace corelane {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::SetBench;

/// Ten times what a machine that is busy takes.
constexpr auto kPatience = seconds(60);

struct ThreadLoad {
  std::size_t size, activations;
  bool in_order;
};

class SetUnder : public ::testing::TestWithParam<ThreadLoad> {};

INSTANTIATE_TEST_SUITE_P(Loads, SetUnder,
                         ::testing::Values(ThreadLoad{1, 1, false}, ThreadLoad{4, 10, false},
                                           ThreadLoad{16, 2, false}, ThreadLoad{4, 10, true}),
                         [](const auto& param) {
                           return std::to_string(param.param.size) + "x" +
                                  std::to_string(param.param.activations) +
                                  (param.param.in_order ? "InOrder" : "");
                         });

/// Every id is collected once, with the result of its own input, by any of the threads.
TEST_P(SetUnder, ThreadsThatSubmitAndCollectLoseNothing) {
  constexpr std::size_t kThreads = 3;
  constexpr std::uint64_t kEach = 3000;
  SetBench bench("null:generic:4?threads=1&fail=100", false);
  const ThreadLoad& load = GetParam();
  InferenceSet set =
      bench.set({.size = load.size, .activations = load.activations, .in_order = load.in_order});
  const std::size_t handles = load.size * load.activations;
  std::vector<std::atomic<int>> seen(kThreads * kEach);
  std::atomic<std::size_t> collected{0};
  std::atomic<std::size_t> failed{0};
  std::atomic<int> wrong{0};

  const auto submit = [&](std::size_t thread) {
    for (std::uint64_t i = 0; i < kEach; ++i) {
      const std::uint64_t id = thread * kEach + i;
      SetHandle handle = set.acquire().value();
      auto* x = static_cast<float*>(handle.context().input(0).value().data);
      for (int k = 0; k < 4; ++k) x[k] = static_cast<float>(id + static_cast<std::uint64_t>(k));
      if (!set.submit(handle, id).ok()) ++wrong;
    }
  };
  const auto collect = [&] {
    while (collected.fetch_add(1) < seen.size()) {
      const SetHandle done = set.collect().value();
      ++seen[done.id()];
      if (!done.status().ok())
        ++failed;
      else if (SetBench::result(done)[3] != static_cast<float>(done.id() + 3))
        ++wrong;
      const SetFigures now = set.figures();
      if (now.available + now.in_flight + now.completed + now.held != handles) ++wrong;
      if (!set.release(done).ok()) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back(submit, i);
    threads.emplace_back(collect);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(failed, seen.size() / 100);
  for (const auto& count : seen) ASSERT_EQ(count, 1);
  EXPECT_EQ(set.figures().available, handles);
}

TEST(SetThreads, AllThatWaitReturnWhenTheSetEnds) {
  SetBench bench("null:rk3566?a=3600s");
  InferenceSet set = bench.set({.size = 2});
  for (std::uint64_t id = 0; id < 2; ++id) ASSERT_TRUE(set.submit(set.acquire().value(), id).ok());
  std::vector<std::future<Code>> waits;
  const std::function<Code()> calls[] = {
      [&] { return set.acquire().error().code(); },
      [&] { return set.collect().error().code(); },
      [&] { return set.collect_id(0).error().code(); },
      [&] { return set.submit(SetTensors{}).error().code(); },
      [&] { return set.wait_idle().code(); },
  };
  for (int i = 0; i < 64; ++i) waits.push_back(std::async(std::launch::async, calls[i % 5]));
  std::this_thread::yield();
  set.shutdown();
  for (std::size_t i = 0; i < waits.size(); ++i) {
    ASSERT_EQ(waits[i].wait_for(kPatience), std::future_status::ready);
    const Code code = waits[i].get();
    // One of the collectors gets the inference that was cancelled before it started.
    EXPECT_TRUE(code == Code::kCancelled || i % 5 == 1) << i;
  }
}

TEST(SetThreads, DrainWaitsForWhatRuns) {
  SetBench bench("null:rk3566?a=10ms");
  InferenceSet set = bench.set({.size = 2});
  for (std::uint64_t id = 0; id < 2; ++id) ASSERT_TRUE(set.submit(set.acquire().value(), id).ok());
  EXPECT_FALSE(set.drain(bench.clock->now()));
  EXPECT_EQ(set.wait_idle(bench.clock->now()).code(), Code::kTimeout);
  auto drained = std::async(std::launch::async, [&] { return set.drain(); });
  while (drained.wait_for(seconds(0)) != std::future_status::ready)
    bench.clock->advance(milliseconds(1));
  EXPECT_TRUE(drained.get());
  EXPECT_TRUE(set.wait_idle(bench.clock->now()).ok());
  EXPECT_EQ(set.figures().completed, 2U);
}

TEST(SetThreads, ASetMayGoWhileItsWorkRuns) {
  SetBench bench("null:rk3588?threads=1&a=1ms", false);
  for (int round = 0; round < 50; ++round) {
    InferenceSet set = bench.set({.size = 8});
    for (std::uint64_t id = 0; id < 8; ++id) {
      const SetHandle handle = set.acquire().value();
      ASSERT_TRUE(set.submit(handle, id, [](const SetHandle& done) { (void)done.status(); }).ok());
    }
  }
}

/// A thread of the device may still be on its way out of the last inference.
TEST(SetThreads, ASetThatEndsGivesItsCoresBackAtOnce) {
  SetBench bench("null:generic:2?threads=1", false);
  for (int round = 0; round < 300; ++round) {
    InferenceSet set = bench.set({.size = 4, .activations = 2, .activate = ActivateOptions{}});
    for (std::uint64_t id = 0; id < 8; ++id)
      ASSERT_TRUE(set.submit(set.acquire().value(), id).ok());
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(set.release(set.collect().value()).ok());
    set = {};
    ASSERT_TRUE(bench.device->holdings().empty()) << round;
  }
}

TEST(SetThreads, AForkedChildIsRefused) {
  SetBench bench("null:rk3588?threads=1&a=1s", false);
  InferenceSet set = bench.set({.size = 2});
  const SetHandle handle = set.acquire().value();
  ASSERT_TRUE(set.submit(handle, 1).ok());
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const bool refused = set.acquire().error().code() == Code::kWrongState &&
                         set.collect().error().code() == Code::kWrongState &&
                         set.submit(handle).code() == Code::kWrongState && !set.cancel(1) &&
                         set.drain() && set.release(handle).code() == Code::kWrongState;
    set.shutdown();
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(set.collect().value().status().ok());
}

TEST(SetThreads, WhatCompletesBehindASubmissionThatIsRefusedIsDelivered) {
  SetBench bench("null", false);
  std::promise<void> refuse;
  std::promise<void> asked;
  const auto hooked = std::make_shared<testing::HookedDevice>(
      bench.device,
      [&asked, gate = refuse.get_future().share()](std::size_t n, const auto&) -> Status {
        if (n != 0) return {};
        asked.set_value();
        gate.wait();
        return error(Code::kBusy, "the line is full");
      });
  bench.program = testing::HookedDevice::program(hooked);
  InferenceSet set = bench.set({.size = 2, .in_order = true});
  const SetHandle first = set.acquire().value();
  auto sent = std::async(std::launch::async, [&] { return set.submit(first, 1); });
  asked.get_future().wait();
  std::atomic<int> called{0};
  ASSERT_TRUE(set.submit(set.acquire().value(), 2, [&](const SetHandle&) { ++called; }).ok());
  while (set.figures().completed == 0) std::this_thread::yield();
  EXPECT_EQ(called, 0) << "the first one is before it";
  refuse.set_value();
  EXPECT_EQ(sent.get().code(), Code::kBusy);
  EXPECT_EQ(called, 1);
}

TEST(SetThreads, AThreadMayWaitForAHandleThatACallbackHas) {
  const SetBench bench("null");
  InferenceSet set = bench.set({.size = 1});
  std::promise<void> called;
  std::promise<void> go_on;
  const auto callback = [&, gate = go_on.get_future().share()](const SetHandle& done) {
    called.set_value();
    gate.wait();
    (void)set.release(done);
  };
  const SetHandle handle = set.acquire().value();
  auto sent = std::async(std::launch::async, [&] { return set.submit(handle, 1, callback); });
  called.get_future().wait();
  auto next = std::async(std::launch::async, [&] { return set.acquire(); });
  // Longer than it takes a set to find out that nobody else uses it.
  for (int second = 0; second < 10; ++second) {
    EXPECT_EQ(next.wait_for(milliseconds(1)), std::future_status::timeout);
    bench.clock->advance(seconds(1));
  }
  go_on.set_value();
  EXPECT_TRUE(next.get());
  EXPECT_TRUE(sent.get().ok());
}

/// What a submission that finds no room ends with, once `end` was called meanwhile.
template <class End>
Status submitted_without_room(InferenceSet& set, const SetBench& bench, const SetHandle& handle,
                              End end) {
  auto sent = std::async(std::launch::async, [&] { return set.submit(handle, 2); });
  while (set.figures().in_flight == 0) std::this_thread::yield();
  end();
  while (sent.wait_for(milliseconds(1)) != std::future_status::ready)
    bench.clock->advance(milliseconds(10));
  return sent.get();
}

TEST(SetThreads, CancellingAndShuttingDownEndASubmissionThatWaitsForRoom) {
  const SetBench bench("null:generic:1?a=36000000s&depth=1");
  InferenceSet others = bench.set({.size = 2});
  for (std::uint64_t id = 0; id < 2; ++id)
    ASSERT_TRUE(others.submit(others.acquire().value(), id).ok()) << "one runs, one waits";
  InferenceSet set = bench.set({.size = 1, .room_time = seconds(60)});
  const SetHandle handle = set.acquire().value();
  const TimePoint begin = bench.clock->now();
  for (int turn = 0; turn < 2; ++turn) {
    const Status cancelled =
        submitted_without_room(set, bench, handle, [&] { EXPECT_TRUE(set.cancel(2)); });
    EXPECT_EQ(cancelled.code(), Code::kCancelled) << cancelled.to_string();
    EXPECT_EQ(set.figures().held, 1U) << "the handle is its user's";
  }
  EXPECT_EQ(submitted_without_room(set, bench, handle, [&] { set.shutdown(); }).code(),
            Code::kCancelled);
  EXPECT_LT(bench.clock->now() - begin, seconds(60)) << "nobody waited for the time to pass";
  EXPECT_EQ(others.figures().in_flight, 2U);
}

/// What a set holds may wait for a job that the thread which ends its last inference is to run.
TEST(SetThreads, TheEndOfASetDoesNotKeepAThreadThatAJobWaitsFor) {
  const auto runs = std::make_shared<device::ListedFaults>(std::vector<device::Fault>{});
  const SetBench bench("null:generic:1?threads=1&a=200ms", false, runs);
  const TimePoint patience = bench.in(kPatience);
  InferenceSet others = bench.set({.size = 1});
  std::atomic<bool> ended{false};
  bool other_ended = false;
  const auto wait_for_the_other = [&](const void*) {
    while (others.figures().completed == 0 && bench.device->clock()->now() < patience)
      std::this_thread::yield();
    other_ended = others.figures().completed == 1;
    ended = true;
  };
  {
    InferenceSet set = bench.set({.size = 1});
    const SetHandle handle = set.acquire().value();
    handle.keep(std::shared_ptr<const void>(&ended, wait_for_the_other));
    ASSERT_TRUE(set.submit(handle, 0).ok());
    ASSERT_TRUE(others.submit(others.acquire().value(), 1).ok());
    runs->await(1);  // What has not begun would be cancelled.
  }
  while (!ended) std::this_thread::yield();
  EXPECT_TRUE(other_ended);
}

/// Work in flight, a thread that waits for it, and one that waits for a handle.
void end_while_it_works(const std::function<void()>& end) {
  alarm(20);
  const SetBench bench("null:rk3588?threads=1&a=3600s", false);
  InferenceSet set = bench.set({.size = 4});
  for (std::uint64_t id = 0; id < 4; ++id) (void)set.submit(set.acquire().value(), id);
  std::thread([&set] { (void)set.collect(); }).detach();
  std::thread([&set] { (void)set.acquire(); }).detach();
  end();
}

TEST(SetThreadsDeathTest, AProcessMayExitOrBeInterruptedWhileItsSetsWork) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_while_it_works([] { std::exit(0); }), ::testing::ExitedWithCode(0), "");
  // A process that a shell starts in the background ignores the signal.
  EXPECT_EXIT(end_while_it_works([] {
                std::signal(SIGINT, SIG_DFL);
                raise(SIGINT);
              }),
              ::testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace corelane
