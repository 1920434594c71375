// Every wait of a session can be interrupted, and loses nothing.
#include <atomic>
#include <future>
#include <thread>

#include "dispatch/interrupt_poll.h"
#include "runtime/testing/hooked_device.h"
#include "session/testing/session_bench.h"

namespace corelane {
namespace {

using namespace corelane::testing;

/// A session whose one core is busy for a second of a clock that stands still, with its queue full.
struct InterruptedWaits : ::testing::Test {
  SessionBench bench{"null:generic:1?a=1s"};
  Session session = bench.session([this] {
    SessionOptions options = bench.options();
    options.max_queue_size = 1;
    return options;
  }());
  int asked = 0;
  CallOptions call = [this] {
    CallOptions options;
    options.interrupted = [this] { return ++asked == 2; };
    return options;
  }();

  void fill() {
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(session.submit(feed_of(bench.x)));
  }
};

TEST_F(InterruptedWaits, ForRoomInTheQueueEndWithoutATask) {
  fill();
  const auto nothing = [](std::uint64_t, const Result<Outputs>&) { FAIL(); };
  const Feed feed = feed_of(bench.x);
  EXPECT_EQ(session.run(feed, call).error().code(), Code::kCancelled);
  asked = 0;
  EXPECT_EQ(session.submit(feed, call).error().code(), Code::kCancelled);
  asked = 0;
  EXPECT_EQ(session.run_async(feed, nothing, call).error().code(), Code::kCancelled);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(session.statistics().accepted, 2U);
  bench.run_out(session);
  EXPECT_EQ(session.statistics().failed, 0U);
}

/// Interruptible runs in a session, which count the tasks that they were.
struct CountedTasks {
  std::size_t tasks = 0;  ///< A run in its caller's thread is not submitted.
  Session session;

  CountedTasks(const std::string& model, bool bounded_jobs) {
    SessionOptions options;
    const auto count = [this](std::size_t, const device::Submission&) -> Status {
      ++tasks;
      return {};
    };
    options.load.on =
        std::make_shared<HookedDevice>(open("null:generic:1?a=1us"), count, bounded_jobs);
    options.load.cache = false;
    session = make_session(model, options);
  }
  /// Of a run with x: f32 [n, 2].
  std::size_t operator()(std::int64_t n) {
    const std::size_t before = tasks;
    const std::vector<float> x(static_cast<std::size_t>(2 * n));
    CallOptions call;
    call.interrupted = [] { return false; };
    EXPECT_TRUE(session.run({item("x", x, Shape{n, 2})}, call));
    return tasks - before;
  }
};

TEST(InterruptedRuns, OfLittleWorkAreNoTasksFromTheFirstOn) {
  const std::string fixed = relu_model({std::int64_t{2}, std::int64_t{2}});
  const std::string open_ended = relu_model({std::string("N"), std::int64_t{2}});
  EXPECT_EQ(CountedTasks(fixed, true)(2), 0U);
  EXPECT_EQ(CountedTasks(fixed, false)(2), 1U) << "the device may hang";
  CountedTasks runs(open_ended, true);
  EXPECT_EQ(runs(2), 0U);
  EXPECT_EQ(runs(3), 1U) << "larger: none of its runs has ended";
  EXPECT_EQ(CountedTasks(open_ended, true)(40'000'000), 1U) << "2 x 80 million elements of 8 steps";
}

TEST(InterruptedRuns, AreTasksInShapesThatAreNotKnownToBeShort) {
  CountedTasks tasks_of(relu_model({std::string("N"), std::int64_t{2}}), false);
  EXPECT_EQ(tasks_of(2), 1U) << "no run has ended";
  EXPECT_EQ(tasks_of(2), 0U);
  EXPECT_EQ(tasks_of(1), 0U) << "smaller";
  EXPECT_EQ(tasks_of(3), 1U) << "larger";
  EXPECT_EQ(tasks_of(3), 0U);
}

TEST_F(InterruptedWaits, OfABatchCancelItsWaitingSamples) {
  const std::vector<float> samples(12, 1.F);
  EXPECT_EQ(session.run_batch({item("x", samples, {3, 4})}, call).error().code(), Code::kCancelled);
  bench.run_out(session);
  const SessionStatistics figures = session.statistics();
  EXPECT_EQ(figures.accepted, 2U);  // One ran on, one waited, one found no room.
  EXPECT_EQ(figures.cancelled, 1U);
}

TEST_F(InterruptedWaits, OfABatchStayForSamplesThatReadTheCallersMemory) {
  const std::vector<float> samples(12, 1.F);
  std::atomic<bool> stop{false};
  call.borrow = true;
  call.interrupted = [&] { return stop.load(); };
  auto batch = std::async(std::launch::async, [&] {
    return session.submit_batch({item("x", samples, {3, 4})}, call).error().code();
  });
  while (session.statistics().waiting < 1) std::this_thread::yield();
  stop = true;
  while (session.statistics().cancelled < 1) std::this_thread::yield();
  // Longer than the time from one question to the next.
  EXPECT_EQ(batch.wait_for(milliseconds(100)), std::future_status::timeout);
  bench.run_out(session);
  EXPECT_EQ(batch.get(), Code::kCancelled);
}

TEST_F(InterruptedWaits, OfAPipelineLeaveItsOutputsToTheNextCall) {
  const std::vector<float> first(4, 1.F);
  const std::vector<float> second(4, 2.F);
  EXPECT_FALSE(session.run_pipeline(feed_of(first), 1).value());
  EXPECT_EQ(session.run_pipeline(feed_of(second), 1, false, call).error().code(), Code::kCancelled);
  asked = 0;
  EXPECT_TRUE(session.flush(call.interrupted).empty());
  bench.run_out(session);
  std::vector<Result<Outputs>> rest = session.flush();
  ASSERT_EQ(rest.size(), 1U);  // An interrupted call submits nothing.
  EXPECT_EQ(floats_of(rest[0].value()[0]), first);
}

TEST_F(InterruptedWaits, OfACloseLetTasksGoOn) {
  fill();
  EXPECT_EQ(session.close(Duration::max(), call.interrupted).code(), Code::kCancelled);
  EXPECT_EQ(session.run(feed_of(bench.x)).error().code(), Code::kWrongState);
  bench.run_out(session);
  EXPECT_TRUE(session.close().ok());
  const SessionStatistics figures = session.statistics();
  EXPECT_EQ(figures.completed, 2U);
  EXPECT_EQ(figures.failed, 0U);
}

}  // namespace
}  // namespace corelane
