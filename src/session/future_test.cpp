#include "corelane/session/future.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <coroutine>
#include <exception>
#include <future>
#include <thread>

#include "runtime/testing/hooked_device.h"
#include "session/testing/session_bench.h"

namespace corelane {
namespace {

using ::testing::ElementsAre;
using testing::feed_of;
using testing::floats_of;
using testing::HookedDevice;
using testing::milliseconds;
using testing::SessionBench;

/// A coroutine that starts at once; no caller waits for it.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

TEST(Future, ResultCanBeAskedForMoreThanOnce) {
  SessionBench bench("null:rk3588?a=10ms");
  Session session = bench.session(bench.options());
  const Future future = session.submit(feed_of({1, 2, 3, 4})).value();
  EXPECT_TRUE(future.valid());
  EXPECT_FALSE(future.done());
  EXPECT_FALSE(future.wait(bench.clock->now()));
  bench.run_out(session);
  EXPECT_TRUE(future.wait());
  EXPECT_THAT(floats_of(future.get()->front()), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(floats_of(future.get()->front()), ElementsAre(1, 2, 3, 4));
}

TEST(Future, OutlivesItsSession) {
  SessionBench bench("null:rk3588", false);
  Future future;
  {
    Session session = bench.session(bench.options());
    future = session.submit(feed_of({1, 2, 3, 4})).value();
  }
  EXPECT_TRUE(future.done());
  EXPECT_TRUE(future.get());
  EXPECT_FALSE(future.cancel());
  std::promise<bool> called;
  future.then([&](const Result<Outputs>& outputs) { called.set_value(outputs.has_value()); });
  EXPECT_TRUE(called.get_future().get());
}

TEST(Future, AWithdrawnContinuationIsDroppedBeforeAndAfterTheResult) {
  SessionBench bench("null:rk3588?a=1ms");
  Session session = bench.session(bench.options());
  std::promise<void> entered;
  std::promise<void> release;
  const Future first = session.submit(feed_of(bench.x)).value();
  first.then([&](const Result<Outputs>&) {
    entered.set_value();
    release.get_future().wait();
  });
  const Future second = session.submit(feed_of(bench.x)).value();
  const auto held = std::make_shared<int>(0);
  const auto counts = [held](const Result<Outputs>&) { ++*held; };
  const Continuation early = second.then(counts);
  const Continuation kept = second.then(counts);
  early.withdraw();
  EXPECT_EQ(held.use_count(), 3) << "of `counts`, `kept` and this";
  for (const Future& future : {first, second})
    while (!future.done()) bench.clock->advance(milliseconds(1));
  entered.get_future().wait();
  const Continuation late = second.then(counts);
  EXPECT_EQ(held.use_count(), 4);
  late.withdraw();
  late.withdraw();
  EXPECT_EQ(held.use_count(), 3) << "though the thread has not come to it";
  release.set_value();
  session.wait_callbacks();
  EXPECT_EQ(*held, 1);
  kept.withdraw();
  Continuation().withdraw();
}

TEST(Future, OfNoCallSaysSo) {
  Future none;
  EXPECT_FALSE(none.valid());
  EXPECT_FALSE(none.done());
  EXPECT_FALSE(none.running());
  EXPECT_FALSE(none.cancel());
  EXPECT_EQ(none.get().error().code(), Code::kWrongState);
}

TEST(Future, CancelTakesAWaitingTaskOutAndLeavesARunningOne) {
  SessionBench bench("null:rk3588?a=10ms");
  SessionOptions options = bench.options();
  options.schedule = {0};
  options.max_queue_size = 2;
  Session session = bench.session(options);
  Future running = session.submit(feed_of(bench.x)).value();
  Future waiting = session.submit(feed_of(bench.x)).value();
  Future last = session.submit(feed_of(bench.x)).value();
  EXPECT_TRUE(running.running());
  EXPECT_FALSE(waiting.running());
  EXPECT_FALSE(running.cancel());
  EXPECT_TRUE(waiting.cancel());
  EXPECT_FALSE(waiting.cancel());
  EXPECT_EQ(waiting.get().error().code(), Code::kCancelled);
  EXPECT_EQ(session.statistics().waiting, 1U);  // There is room again.
  bench.run_out(session);
  EXPECT_TRUE(running.get());
  EXPECT_FALSE(running.running());
  EXPECT_TRUE(last.get());
  EXPECT_EQ(bench.now_ms(), 20);
  EXPECT_EQ(session.statistics().cancelled, 1U);
}

TEST(Future, CancelReachesATaskThatWaitsOnTheDevice) {
  SessionBench bench("null:rk3588?a=10ms");
  SessionOptions options = bench.options();
  options.schedule = {0};
  options.threads_per_core = 2;
  Session session = bench.session(options);
  Future running = session.submit(feed_of(bench.x)).value();
  Future queued = session.submit(feed_of(bench.x)).value();
  EXPECT_EQ(session.statistics().running, 2U);
  EXPECT_TRUE(queued.cancel());
  EXPECT_EQ(queued.get().error().code(), Code::kCancelled);
  bench.run_out(session);
  EXPECT_TRUE(running.get());
}

TEST(Future, CancelOfATaskThatIsBeingStartedHoldsThoughTheDeviceRunsIt) {
  SessionBench bench("null:generic:1?a=10ms");
  Future starting;
  CallOptions call;
  call.control.emplace();
  bool cancelled = false;
  SessionOptions options = bench.options();
  options.load.on = std::make_shared<HookedDevice>(
      bench.device, [&](std::size_t n, const device::Submission&) -> Status {
        if (n == 1) cancelled = starting.cancel() && starting.cancel();
        if (n == 2) call.control->terminate();
        return {};
      });
  Session session = bench.session(options);
  const Future running = session.submit(feed_of(bench.x)).value();
  starting = session.submit(feed_of(bench.x)).value();
  const Future terminated = session.submit(feed_of(bench.x), call).value();
  bench.run_out(session);
  EXPECT_TRUE(running.get());
  EXPECT_TRUE(cancelled);
  EXPECT_EQ(starting.get().error().code(), Code::kCancelled);
  EXPECT_EQ(terminated.get().error().code(), Code::kCancelled);
  EXPECT_EQ(bench.device->counters().completed, 3U);
}

TEST(Future, ABatchIsCancelledAsOne) {
  SessionBench bench("null:rk3588?a=10ms");
  SessionOptions options = bench.options();
  options.max_queue_size = 8;
  Session session = bench.session(options);
  const std::vector<float> x(16);
  Future batch = session.submit_batch({testing::item("x", x, Shape{4, 4})}).value();
  EXPECT_TRUE(batch.cancel());
  bench.run_out(session);
  EXPECT_EQ(batch.get().error().code(), Code::kCancelled);
  EXPECT_EQ(bench.now_ms(), 10);
}

TEST(Future, CoroutinesGoOnInTheCallbackThread) {
  SessionBench bench("null:rk3588", false);
  Session session = bench.session(bench.options());
  std::promise<std::vector<float>> sum;
  [](Session s, std::promise<std::vector<float>>* out) -> Detached {
    const std::vector<float> x = {1, 2, 3, 4};
    const Feed feed = feed_of(x);
    const Outputs first = (co_await s.run_awaitable(feed)).value();
    const Future future = s.submit({{"x", first.front().view(), first.front().data}}).value();
    const Outputs second = (co_await future).value();
    out->set_value(floats_of(second.front()));
  }(session, &sum);
  EXPECT_THAT(sum.get_future().get(), ElementsAre(1, 2, 3, 4));
  std::promise<Code> refused;
  [](Session s, std::promise<Code>* out) -> Detached {
    const Feed none;
    out->set_value((co_await s.run_awaitable(none)).error().code());
  }(session, &refused);
  EXPECT_EQ(refused.get_future().get(), Code::kInvalidArgument);
}

TEST(CallControl, WhatIsMovedFromIsTheSameSwitch) {
  CallControl first;
  const CallControl second = std::move(first);  // NOLINT(performance-move-const-arg): under test.
  first.terminate();                            // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(second.terminated());
}

TEST(CallControl, TerminateFailsQueuedTasksAtOnceAndLaterOnesUntilReset) {
  SessionBench bench("null:rk3588?a=10ms");
  SessionOptions options = bench.options();
  options.schedule = {0};
  Session session = bench.session(options);
  CallOptions call;
  call.control.emplace();
  Future running = session.submit(feed_of(bench.x), call).value();
  Future waiting = session.submit(feed_of(bench.x), call).value();
  Future other = session.submit(feed_of(bench.x)).value();
  call.control->terminate();
  EXPECT_EQ(waiting.get().error().code(), Code::kCancelled);
  EXPECT_EQ(waiting.get().error().detail(Detail::kGiven), "terminate");
  EXPECT_EQ(session.submit(feed_of(bench.x), call).error().code(), Code::kCancelled);
  const Status refused = session.run(feed_of(bench.x), call).error();
  EXPECT_EQ(refused.code(), Code::kCancelled);
  EXPECT_EQ(refused.detail(Detail::kGiven), "terminate");
  call.control->reset();
  Future again = session.submit(feed_of(bench.x), call).value();
  bench.run_out(session);
  EXPECT_TRUE(running.get());
  EXPECT_TRUE(other.get());
  EXPECT_TRUE(again.get());
}

TEST(CallControl, TerminateReachesACallThatWaitsForRoom) {
  SessionBench bench("null:rk3588?a=10ms");
  SessionOptions options = bench.options();
  options.schedule = {0};
  options.max_queue_size = 1;
  Session session = bench.session(options);
  Future running = session.submit(feed_of(bench.x)).value();
  Future waiting = session.submit(feed_of(bench.x)).value();
  CallOptions call;
  call.control.emplace();
  Status status;
  std::thread blocked([&] { status = session.run(feed_of(bench.x), call).error(); });
  // Whether it waits for room already or comes later: the time stands still.
  call.control->terminate();
  blocked.join();
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_EQ(status.detail(Detail::kGiven), "terminate");
  bench.run_out(session);
}

TEST(CallTimeout, EndsTasksThatWaitAndTasksThatRun) {
  SessionBench bench("null:rk3588?a=10ms");
  SessionOptions options = bench.options();
  options.schedule = {0};
  Session session = bench.session(options);
  CallOptions call;
  call.timeout = milliseconds(4);
  Future running = session.submit(feed_of(bench.x), call).value();
  Future waiting = session.submit(feed_of(bench.x), call).value();
  Future fine = session.submit(feed_of({4, 3, 2, 1})).value();
  bench.clock->advance(milliseconds(4));
  EXPECT_EQ(running.get().error().code(), Code::kTimeout);
  EXPECT_EQ(waiting.get().error().code(), Code::kTimeout);
  bench.run_out(session);
  EXPECT_THAT(floats_of(fine.get()->front()), ElementsAre(4, 3, 2, 1));
  EXPECT_TRUE(session.close().ok());
}

TEST(CallInterrupt, EndsTheWaitOfABlockingCall) {
  SessionBench bench("null:rk3588?a=10s");
  Session session = bench.session(bench.options());
  CallOptions call;
  std::atomic<int> asked{0};
  call.interrupted = [&] { return ++asked == 2; };
  {
    std::vector<float> gone = {1, 2, 3, 4};
    EXPECT_EQ(session.run(feed_of(gone), call).error().code(), Code::kCancelled);
  }
  EXPECT_EQ(asked, 2);
  bench.run_out(session);  // The task goes on with inputs of its own.
  EXPECT_EQ(session.statistics().completed, 1U);
}

}  // namespace
}  // namespace corelane
