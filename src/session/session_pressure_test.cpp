// Queue, back-pressure, pace: what happens when callers are faster than the cores.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <thread>

#include "session/testing/session_bench.h"

namespace corelane {
namespace {

using testing::CallbackLog;
using testing::feed_of;
using testing::microseconds;
using testing::milliseconds;
using testing::SessionBench;

TEST(SessionQueue, AFullQueueTimesOutAndAcceptedTasksStillCallBack) {
  SessionBench bench("null:rk3588?a=3600s");
  SessionOptions options = bench.options();
  options.schedule = {0};
  options.submit_timeout = milliseconds(50);
  Session session = bench.session(options);
  CallbackLog log;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(session.run_async(feed_of(bench.x), log.callback(bench)));
  EXPECT_EQ(session.statistics().running, 1U);
  EXPECT_EQ(session.statistics().waiting, 3U);
  std::atomic<bool> over{false};
  Result<std::uint64_t> late = error(Code::kInternal, "not called");
  std::thread submitter([&] {
    late = session.run_async(feed_of(bench.x), log.callback(bench));
    over = true;
  });
  // Long before the first task ends.
  while (!over) {
    bench.clock->advance(microseconds(100));
    std::this_thread::yield();
  }
  submitter.join();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::kTimeout);
  EXPECT_EQ(session.statistics().rejected, 1U);
  bench.run_out(session);
  EXPECT_THAT(log.tasks(), ::testing::ElementsAre(0, 1, 2, 3));
}

TEST(SessionQueue, RoomThatComesInTimeIsTaken) {
  SessionBench bench("null:rk3588?a=10ms");
  SessionOptions options = bench.options();
  options.schedule = {0};
  options.max_queue_size = 1;
  Session session = bench.session(options);
  CallbackLog log;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(session.run_async(feed_of(bench.x), log.callback(bench)));
  EXPECT_FALSE(session.try_run_async(feed_of(bench.x), log.callback(bench))->has_value());
  std::thread submitter(
      [&] { EXPECT_TRUE(session.run_async(feed_of(bench.x), log.callback(bench))); });
  while (session.statistics().accepted < 3) {
    bench.step(session);
    std::this_thread::yield();
  }
  submitter.join();
  bench.run_out(session);
  EXPECT_THAT(log.tasks(), ::testing::ElementsAre(0, 1, 2));
}

TEST(SessionQueue, TrySubmitGivesAFutureOrNothingAtOnce) {
  SessionBench bench("null:rk3588?a=10ms");
  SessionOptions options = bench.options();
  options.schedule = {0};
  options.max_queue_size = 1;
  Session session = bench.session(options);
  std::optional<Future> running = session.try_submit(feed_of(bench.x)).value();
  std::optional<Future> waiting = session.try_submit(feed_of(bench.x)).value();
  ASSERT_TRUE(running && waiting);
  EXPECT_FALSE(session.try_submit(feed_of(bench.x)).value());  // The clock stands still.
  EXPECT_EQ(session.statistics().rejected, 1U);
  EXPECT_EQ(session.try_submit({}).error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(waiting->cancel());
  bench.run_out(session);
  EXPECT_TRUE(running->get());
  EXPECT_EQ(waiting->get().error().code(), Code::kCancelled);
}

TEST(SessionQueue, UnlimitedTakesEverythingAtOnce) {
  SessionBench bench("null:rk3588?a=10ms");
  SessionOptions options = bench.options();
  options.max_queue_size = kUnlimited;
  options.max_pending_callbacks = kUnlimited;
  Session session = bench.session(options);
  CallbackLog log;
  for (int i = 0; i < 500; ++i)
    ASSERT_TRUE(session.try_run_async(feed_of(bench.x), log.callback(bench))->has_value());
  EXPECT_EQ(session.statistics().waiting, 499U);
  bench.run_out(session);
  EXPECT_EQ(log.entries.size(), 500U);
  EXPECT_EQ(bench.now_ms(), 5000);
}

TEST(SessionQueue, SlowCallbacksHoldSubmissionUp) {
  SessionBench bench("null:rk3588");
  SessionOptions options = bench.options();
  options.max_pending_callbacks = 8;
  Session session = bench.session(options);
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  std::atomic<int> called{0};
  const RunCallback slow = [&](std::uint64_t, const Result<Outputs>&) {
    open.wait();
    ++called;
  };
  // Tasks take no time: the eighth is the last that finds fewer than eight pending.
  for (int i = 0; i < 8; ++i)
    EXPECT_TRUE(session.try_run_async(feed_of(bench.x), slow)->has_value()) << i;
  EXPECT_FALSE(session.try_run_async(feed_of(bench.x), slow)->has_value());
  EXPECT_EQ(session.statistics().pending_callbacks, 8U);
  gate.set_value();
  ASSERT_TRUE(session.wait_callbacks());
  EXPECT_EQ(called, 8);
  EXPECT_TRUE(session.try_run_async(feed_of(bench.x), slow)->has_value());
  ASSERT_TRUE(session.close().ok());  // Before what the callback uses goes.
}

TEST(SessionQueue, NoWakeUpIsLostInFiftyThousandSubmissions) {
  SessionBench bench("null:rk3588", false);
  SessionOptions options = bench.options();
  options.schedule = {0, 1, 2};
  Session session = bench.session(options);
  std::atomic<int> called{0};
  CallOptions call;
  call.submit_timeout = std::chrono::seconds(60);  // A lost one is a failure, not a delay.
  for (int i = 0; i < 50'000; ++i) {
    const auto id = session.run_async(
        feed_of(bench.x), [&](std::uint64_t, const Result<Outputs>& o) { called += o.has_value(); },
        call);
    ASSERT_TRUE(id) << id.error().to_string();
  }
  ASSERT_TRUE(session.close().ok());
  EXPECT_EQ(called, 50'000);
}

TEST(SessionQueue, NoWakeUpIsLostOnThreadsThatTakeJobs) {
  SessionBench bench("null:rk3588?threads=1", false);
  SessionOptions options = bench.options();
  options.schedule = {0, 1, 2};
  options.threads_per_core = 2;
  Session session = bench.session(options);
  std::atomic<int> called{0};
  CallOptions call;
  call.submit_timeout = std::chrono::seconds(60);
  for (int i = 0; i < 5'000; ++i) {
    ASSERT_TRUE(session.run_async(
        feed_of(bench.x), [&](std::uint64_t, const Result<Outputs>& o) { called += o.has_value(); },
        call));
  }
  ASSERT_TRUE(session.close().ok());
  EXPECT_EQ(called, 5'000);
}

/// The median of 30 gaps between accepted submissions, in us, of tasks that take 20 ms.
std::int64_t median_gap(const std::vector<std::size_t>& schedule, int threads) {
  SessionBench bench("null:rk3588?a=20ms");
  SessionOptions options = bench.options();
  options.schedule = schedule;
  options.threads_per_core = threads;
  options.enable_pacing = true;
  options.max_queue_size = 64;
  options.max_pending_callbacks = kUnlimited;
  Session session = bench.session(options);
  CallbackLog log;
  EXPECT_TRUE(session.run_async(feed_of(bench.x), log.callback(bench)));
  bench.run_out(session);  // The first sample.
  std::vector<TimePoint> accepted;
  while (accepted.size() < 31)
    if (session.try_run_async(feed_of(bench.x), log.callback(bench))->has_value())
      accepted.push_back(bench.clock->now());
    else
      bench.clock->advance(microseconds(10));
  bench.run_out(session);
  EXPECT_EQ(log.entries.size(), 32U);  // None is lost.
  std::vector<std::int64_t> gaps;
  for (std::size_t i = 1; i < accepted.size(); ++i)
    gaps.push_back((accepted[i] - accepted[i - 1]).count() / 1000);
  std::sort(gaps.begin(), gaps.end());
  return gaps[gaps.size() / 2];
}

TEST(SessionPace, MedianGapIsTheTaskOverItsUniqueCores) {
  EXPECT_NEAR(median_gap({0}, 1), 20'000, 2'000);
  EXPECT_NEAR(median_gap({0, 1, 2}, 1), 6'667, 667);
  EXPECT_NEAR(median_gap({0, 1, 2}, 2), 6'667, 667);
  EXPECT_NEAR(median_gap({0, 0, 1}, 1), 10'000, 1'000);
  EXPECT_NEAR(median_gap({}, 1), 20'000, 2'000);
}

TEST(SessionPace, FailedTasksAreNoSample) {
  SessionBench bench("null:rk3588?a=20ms&fail=1");
  SessionOptions options = bench.options();
  options.enable_pacing = true;
  Session session = bench.session(options);
  CallbackLog log;
  ASSERT_TRUE(session.run_async(feed_of(bench.x), log.callback(bench)));
  bench.run_out(session);
  EXPECT_EQ(session.statistics().average_device_time, Duration{0});
}

TEST(SessionPace, TheWaitEndsAtTheSubmitTimeout) {
  SessionBench bench("null:rk3588?a=3600s");
  SessionOptions options = bench.options();
  options.enable_pacing = true;
  Session session = bench.session(options);
  CallbackLog log;
  ASSERT_TRUE(session.run_async(feed_of(bench.x), log.callback(bench)));
  bench.run_out(session);
  ASSERT_TRUE(session.run_async(feed_of(bench.x), log.callback(bench)));
  CallOptions call;
  call.submit_timeout = milliseconds(50);
  std::atomic<bool> over{false};
  Status status;
  std::thread submitter([&] {
    status = session.run_async(feed_of(bench.x), log.callback(bench), call).error();
    over = true;
  });
  while (!over) {
    bench.clock->advance(microseconds(100));
    std::this_thread::yield();
  }
  submitter.join();
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("pace"));
  EXPECT_EQ(session.statistics().paced, 1U);
  bench.run_out(session);
}

TEST(SessionPace, WaitingForItTakesNoProcessorTime) {
  SessionBench bench("null:rk3588?a=20ms&threads=1", false);
  SessionOptions options = bench.options();
  options.schedule = {0};
  options.enable_pacing = true;
  Session session = bench.session(options);
  const auto spent = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
  };
  ASSERT_TRUE(session.run(feed_of(bench.x)));
  const auto before = spent();
  const TimePoint start = session.clock()->now();
  std::atomic<int> called{0};
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(session.run_async(feed_of(bench.x),
                                  [&](std::uint64_t, const Result<Outputs>&) { ++called; }));
  }
  const auto cpu = spent() - before;
  const auto wall = session.clock()->now() - start;
  ASSERT_TRUE(session.close().ok());
  EXPECT_EQ(called, 20);
  EXPECT_GE(wall, milliseconds(19 * 19));
  EXPECT_LT(cpu * 20, wall);  // Below 5 %.
}

/// A device in whose line one job may wait, and a session of four contexts on its core.
struct FullLine : ::testing::Test {
  explicit FullLine(const std::string& job = "1ms", bool virtual_time = false)
      : bench("null:generic:1?depth=1&a=" + job, virtual_time) {}
  SessionOptions options() const {
    SessionOptions options = bench.options();
    options.threads_per_core = 4;
    options.max_queue_size = kUnlimited;
    return options;
  }
  SessionBench bench;
};

TEST_F(FullLine, IsWaitedForByAcceptedTasks) {
  Session session = bench.session(options());
  std::vector<Future> futures;
  for (int i = 0; i < 40; ++i) futures.push_back(session.submit(feed_of(bench.x)).value());
  for (const Future& future : futures) EXPECT_TRUE(future.get());
  EXPECT_EQ(session.statistics().failed, 0U);
}

TEST_F(FullLine, IsWaitedForByBlockingRunsOfSeveralSessions) {
  std::array<Session, 4> sessions;
  for (Session& session : sessions) session = bench.session(bench.options());
  std::atomic<int> failed{0};
  std::vector<std::thread> callers;
  for (Session& session : sessions) {
    callers.emplace_back([&] {
      for (int i = 0; i < 20; ++i) failed += session.run(feed_of(bench.x)) ? 0 : 1;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(failed, 0);
}

struct FullLineOfSlowJobs : FullLine {
  FullLineOfSlowJobs() : FullLine("1s", true) {}
};

TEST_F(FullLineOfSlowJobs, LeavesCancelAndTimeLimitsInForce) {
  Session session = bench.session(options());
  CallOptions limited;
  limited.timeout = milliseconds(200);
  const Feed feed = feed_of(bench.x);
  const Future runs = session.submit(feed).value();
  const Future in_line = session.submit(feed).value();
  Future cancelled = session.submit(feed).value();
  const Future late = session.submit(feed, limited).value();
  EXPECT_TRUE(cancelled.cancel());
  bench.clock->advance(milliseconds(100));
  EXPECT_EQ(cancelled.get().error().code(), Code::kCancelled);
  bench.clock->advance(milliseconds(200));
  EXPECT_EQ(late.get().error().code(), Code::kTimeout);
  bench.clock->advance(milliseconds(2000));
  EXPECT_TRUE(runs.get());
  EXPECT_TRUE(in_line.get());
}

}  // namespace
}  // namespace corelane
