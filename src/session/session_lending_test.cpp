// What a caller lends to a call: for how long it is used, and what comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "corelane/device/buffer.h"
#include "corelane/device/device.h"
#include "session/testing/session_bench.h"

namespace corelane {
namespace {

using testing::CallbackLog;
using ::testing::ElementsAre;
using testing::feed_of;
using testing::floats_of;
using ::testing::HasSubstr;
using testing::item;
using testing::milliseconds;
using testing::SessionBench;

/// True when it is asked for the `nth` time.
std::function<bool()> interrupt_at(int nth) {
  return [asked = 0, nth]() mutable { return ++asked == nth; };
}

Session two_shapes(SessionOptions options) {
  options.load.import.shape_sets = {{Shape{1, 2}}, {Shape{3, 2}}};
  return testing::make_session(testing::relu_model({std::string("N"), std::int64_t{2}}), options);
}

TEST(SessionLending, AnInterruptedRunLeavesTheBoundMemoryAlone) {
  SessionBench bench("null:generic:1?a=1s");
  Session session = bench.session(bench.options());
  std::vector<float> y(4, -7.0F);
  IoBinding binding = session.io_binding().value();
  ASSERT_TRUE(binding.bind_input("x", feed_of(bench.x)[0].view).ok());
  ASSERT_TRUE(binding.bind_output("y", {y.data(), 16, DType::kF32, Shape{1, 4}, {}, {}}).ok());
  CallOptions call;
  call.interrupted = interrupt_at(2);
  EXPECT_EQ(session.run(binding, call).code(), Code::kCancelled);
  EXPECT_TRUE(binding.outputs().empty());
  bench.run_out(session);
  EXPECT_THAT(y, ElementsAre(-7, -7, -7, -7));
  // Not interrupted, it is written.
  call.interrupted = [&] {
    bench.clock->advance(std::chrono::seconds(1));
    return false;
  };
  ASSERT_TRUE(session.run(binding, call).ok());
  EXPECT_EQ(y, bench.x);
  EXPECT_EQ(binding.outputs().at(0).data.get(), y.data());
}

TEST(SessionLending, ARunThatMayBeInterruptedWritesNothingBehindTheResult) {
  SessionBench bench("null:generic:1", false);
  Session session = testing::make_session(testing::relu_model({std::string("N"), std::int64_t{2}}),
                                          bench.options());
  std::vector<float> y(6, -7.0F);
  IoBinding binding = session.io_binding().value();
  ASSERT_TRUE(binding.bind_input("x", item("x", bench.x, Shape{2, 2}).view).ok());
  ASSERT_TRUE(binding.bind_output("y", {y.data(), 24, DType::kF32, Shape{3, 2}, {}, {}}).ok());
  CallOptions call;
  call.interrupted = [] { return false; };
  ASSERT_TRUE(session.run(binding, call).ok());
  EXPECT_EQ(binding.outputs().at(0).shape, (Shape{2, 2}));
  EXPECT_THAT(y, ElementsAre(1, 2, 3, 4, -7, -7));
}

TEST(SessionLending, BorrowedInputsAreCopiedWhereTheCallerMayLeave) {
  SessionBench bench("null:generic:1?a=1s");
  Session session = bench.session(bench.options());
  std::vector<float> y(4);
  CallOptions call;
  call.borrow = true;
  call.interrupted = interrupt_at(2);
  auto x = std::make_unique<std::vector<float>>(4, 1.0F);
  EXPECT_EQ(session.run(feed_of(*x), call).error().code(), Code::kCancelled);
  x.reset();  // An address sanitizer sees it where the job still reads this.
  bench.run_out(session);
  EXPECT_EQ(session.statistics().failed, 0U);
}

TEST(SessionLending, WhatKeepsTheMemoryMayOwnTheSession) {
  struct Holder {
    Session session;
    std::vector<float> x = {1, 2, 3, 4};
  };
  SessionBench bench("null:generic:1?a=10ms");
  auto holder = std::make_shared<Holder>();
  holder->session = bench.session(bench.options());
  const std::weak_ptr<Holder> watch = holder;
  CallOptions call;
  call.borrow = true;
  std::promise<void> done;
  FeedItem x = item("x", holder->x, Shape{1, 4});
  x.keep_alive = holder;
  Session* session = &holder->session;
  ASSERT_TRUE(session->run_async(
      {std::move(x)}, [&](auto, const auto&) { done.set_value(); }, call));
  holder.reset();
  bench.clock->advance(milliseconds(10));
  EXPECT_EQ(done.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!watch.expired() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  EXPECT_TRUE(watch.expired());
}

TEST(SessionLending, BoundBuffersKeepTheShapeTheyWereBoundWith) {
  SessionBench bench("null:rk3588", false);
  Session session = two_shapes(bench.options());
  const auto buffer = bench.device->create_buffer(8, {}).value();
  IoBinding binding = session.io_binding().value();
  ASSERT_TRUE(binding.bind_input("x", buffer).ok());
  for (int i = 0; i < 2; ++i) {
    const Status status = session.run(binding);
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(binding.outputs().at(0).shape, (Shape{1, 2}));
    const std::vector<float> other(6, 1.0F);
    ASSERT_TRUE(session.run({item("x", other, Shape{3, 2})}));
  }
}

TEST(SessionLending, AFailedRunWithABindingLeavesNoOldOutputs) {
  SessionBench bench("null:rk3588", false);
  Session session = bench.session(bench.options());
  IoBinding binding = session.io_binding().value();
  ASSERT_TRUE(binding.bind_input("x", feed_of(bench.x)[0].view).ok());
  ASSERT_TRUE(session.run(binding).ok());
  CallOptions call;
  call.control.emplace().terminate();
  EXPECT_FALSE(session.run(binding, call).ok());
  EXPECT_TRUE(binding.outputs().empty());
}

TEST(SessionBatchLimits, OfTheWaitForRoomIsThatOfEachSampleAndWaitsForNothing) {
  SessionBench bench("null:generic:1?a=80ms");
  SessionOptions options = bench.options();
  options.max_queue_size = 1;
  Session session = bench.session(options);
  CallOptions call;
  call.interrupted = [&] {
    bench.clock->advance(milliseconds(20));
    return false;
  };
  const std::vector<float> samples(40, 1.0F);
  const Feed feed = {item("x", samples, Shape{10, 4})};
  // Each sample finds room after 80 ms, the last one after 640.
  call.submit_timeout = milliseconds(100);
  EXPECT_TRUE(session.submit_batch(feed, call));
  bench.run_out(session);
  const int before = bench.now_ms();
  call.submit_timeout = milliseconds(50);
  const auto batch = session.submit_batch(feed, call);
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().code(), Code::kTimeout);
  EXPECT_EQ(session.statistics().running, 1U);  // Not waited for.
  EXPECT_EQ(session.statistics().waiting, 0U);
  EXPECT_LT(bench.now_ms(), before + 80);
  bench.run_out(session);
}

TEST(SessionBatchLimits, AskWhileSamplesComeAndGo) {
  SessionBench bench("null:generic:1?a=1ms");
  SessionOptions options = bench.options();
  options.max_queue_size = 1;
  options.submit_timeout = std::chrono::hours(10);
  Session session = bench.session(options);
  CallOptions call;
  int asked = 0;
  call.interrupted = [&] { return ++asked == 3; };
  std::atomic<bool> over{false};
  std::thread time([&] {  // Rooms come faster than one asks.
    while (!over) {
      bench.clock->advance(milliseconds(1));
      std::this_thread::yield();
    }
  });
  const std::vector<float> samples(400000, 1.0F);
  const auto result = session.run_batch({item("x", samples, Shape{100000, 4})}, call);
  over = true;
  time.join();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kCancelled);
  bench.run_out(session);
}

TEST(SessionBatchLimits, ListedShapesAreCheckedBeforeAnythingIsQueued) {
  SessionBench bench("null:rk3588");
  Session session = two_shapes(bench.options());
  const std::vector<float> samples(35, 1.0F);
  const auto result = session.run_batch({item("x", samples, Shape{5, 7})});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kShapeMismatch) << result.error().to_string();
  EXPECT_EQ(session.statistics().accepted, 0U);
}

TEST(SessionPipeline, AnInterruptedCallLeavesItAsItWas) {
  SessionBench bench("null:generic:1?a=10ms");
  Session session = bench.session(bench.options());
  CallOptions stop;
  stop.interrupted = interrupt_at(2);
  CallOptions go;
  go.interrupted = [&] {
    bench.clock->advance(milliseconds(10));
    return false;
  };
  const auto frame = [](float value) { return std::vector<float>(4, value); };
  EXPECT_FALSE(session.run_pipeline(feed_of(frame(1)), 1, false, go).value());
  EXPECT_EQ(session.run_pipeline(feed_of(frame(2)), 1, false, stop).error().code(),
            Code::kCancelled);
  const auto third = session.run_pipeline(feed_of(frame(3)), 1, false, go).value();
  EXPECT_EQ(floats_of(third->at(0)), frame(1));
  const auto fourth = session.run_pipeline(feed_of(frame(4)), 1, false, go).value();
  EXPECT_EQ(floats_of(fourth->at(0)), frame(3));
  bench.run_out(session);
}

TEST(SessionPipeline, AQuestionThatThrowsIsAnInterruption) {
  SessionBench bench("null:generic:1?a=10ms");
  Session session = bench.session(bench.options());
  ASSERT_TRUE(session.run_pipeline(feed_of(bench.x), 3));
  const std::function<bool()> thrown = []() -> bool { throw std::runtime_error("no"); };
  EXPECT_TRUE(session.flush(thrown).empty());
  bench.run_out(session);
  EXPECT_EQ(session.flush().size(), 1U);
}

TEST(SessionPerfLine, OfARunThatNeverReachedTheDeviceHasNoTime) {
  SessionBench bench("null:generic:1?a=1ms", false);
  SessionOptions options = bench.options();
  std::vector<std::string> lines;
  options.print_perf = true;
  options.perf_sink = [&](std::string_view line) { lines.emplace_back(line); };
  Session session = bench.session(options);
  ASSERT_TRUE(session.run(feed_of(bench.x)));
  IoBinding binding = session.io_binding().value();
  ASSERT_TRUE(binding.bind_input("x", feed_of(bench.x)[0].view).ok());
  std::vector<float> odd(5);
  auto* unaligned = reinterpret_cast<float*>(reinterpret_cast<char*>(odd.data()) + 1);
  ASSERT_TRUE(binding.bind_output("y", {unaligned, 4, DType::kF32, Shape{1, 4}, {}, {}}).ok());
  EXPECT_FALSE(session.run(binding).ok());
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[1], HasSubstr("infer_us=0 "));
}

}  // namespace
}  // namespace corelane
