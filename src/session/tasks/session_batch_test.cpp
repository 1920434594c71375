// Batches that are split, and pipelines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "corelane/driver/forwarding_device.h"
#include "session/testing/session_bench.h"

namespace corelane {
namespace {

using testing::CallbackLog;
using ::testing::ElementsAre;
using testing::feed_of;
using testing::floats_of;
using testing::item;
using testing::milliseconds;
using testing::SessionBench;

std::vector<float> ramp(std::size_t n) {
  std::vector<float> v(n);
  std::iota(v.begin(), v.end(), 0.0F);
  return v;
}

/// 12 samples of 20 ms on the cores of `schedule`; how long they take together.
int batch_time(const std::vector<std::size_t>& schedule) {
  SessionBench bench("null:rk3588?a=20ms");
  SessionOptions options = bench.options();
  options.schedule = schedule;
  options.max_queue_size = 12;
  Session session = bench.session(options);
  const std::vector<float> x = ramp(48);
  const Future future = session.submit_batch({item("x", x, Shape{12, 4})}).value();
  while (!future.done()) bench.step(session);
  EXPECT_EQ(floats_of(future.get()->front()), x);
  EXPECT_EQ(future.get()->front().shape, (Shape{12, 4}));
  return bench.now_ms();
}

/// 12 samples of 50 ms on one core, where a submission waits 200 ms at most.
Status status_of_long_batch(bool paced) {
  SessionBench bench("null:rk3588?a=50ms");
  SessionOptions options = bench.options();
  options.schedule = {0};
  options.submit_timeout = milliseconds(200);
  options.enable_pacing = paced;
  Session session = bench.session(options);
  const std::vector<float> x = ramp(48);
  std::atomic<bool> over{false};
  Status status;
  std::thread caller([&] {
    const auto outputs = session.run_batch({item("x", x, Shape{12, 4})});
    if (!outputs) status = outputs.error();
    over = true;
  });
  while (!over) {
    bench.clock->advance(milliseconds(1));
    std::this_thread::yield();
  }
  caller.join();
  bench.run_out(session);
  return status;
}

TEST(SessionBatch, EachSampleMayWaitForRoomAsLongAsACallMay) {
  EXPECT_TRUE(status_of_long_batch(false).ok());
  EXPECT_TRUE(status_of_long_batch(true).ok());
}

TEST(SessionBatch, SamplesSpreadOverTheCoresWithoutGaps) {
  EXPECT_EQ(batch_time({0}), 240);
  EXPECT_EQ(batch_time({0, 1, 2}), 80);
}

TEST(SessionBatch, BlockingBatchDrawsFromTheSameCounter) {
  SessionBench bench("null:rk3588");
  SessionOptions options = bench.options();
  options.schedule = {0, 1, 2};
  Session session = bench.session(options);
  const std::vector<float> x = ramp(20);
  EXPECT_EQ(floats_of(session.run_batch({item("x", x, Shape{5, 4})})->front()), x);
  EXPECT_EQ(session.submit(feed_of(bench.x))->task_id(), 5U);
  EXPECT_EQ(session.statistics().accepted, 6U);
}

TEST(SessionBatch, OneFailedSampleFailsTheCallAndNothingElse) {
  SessionBench bench("null:rk3588?fail=3");
  Session session = bench.session(bench.options());
  const std::vector<float> x = ramp(16);
  const auto failed = session.run_batch({item("x", x, Shape{4, 4})});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::kEngineFailed);
  EXPECT_EQ(failed.error().message(), "sample 2");
  EXPECT_TRUE(session.run(feed_of(bench.x)));
  CallbackLog log;
  ASSERT_TRUE(session.run_batch_async({item("x", x, Shape{4, 4})}, log.callback(bench)));
  ASSERT_TRUE(session.wait_callbacks());
  ASSERT_EQ(log.entries.size(), 1U);
  EXPECT_EQ(log.entries[0].status.code(), Code::kEngineFailed);
}

TEST(SessionBatch, FeedsThatAreNoBatchAreRefused) {
  SessionBench bench("null:rk3588");
  Session session = bench.session(bench.options());
  const std::vector<float> x = ramp(8);
  const auto refused = [&](Shape shape) {
    return session.run_batch({item("x", x, std::move(shape))}).error().code();
  };
  EXPECT_EQ(refused(Shape{0, 4}), Code::kInvalidArgument) << "it holds no sample";
  EXPECT_EQ(refused(Shape{2, 3}), Code::kShapeMismatch);
  EXPECT_EQ(refused(Shape{4}), Code::kShapeMismatch);
  Session two = testing::make_session(testing::relu_model({std::int64_t{2}, std::int64_t{4}}),
                                      bench.options());
  EXPECT_FALSE(two.run_batch({item("x", x, Shape{2, 4})}));
}

TEST(SessionBatch, AFixedDimension0IsNamedWhateverTheBatchHas) {
  SessionBench bench("null:rk3588");
  Session three = testing::make_session(testing::relu_model({std::int64_t{3}, std::int64_t{2}}),
                                        bench.options());
  const std::vector<float> x = ramp(12);
  for (const std::int64_t samples : {3, 6}) {
    const Status refused = three.run_batch({item("x", x, Shape{samples, 2})}).error();
    EXPECT_EQ(refused.code(), Code::kShapeMismatch);
    EXPECT_EQ(refused.message(),
              "input 'x' has 3 fixed in dimension 0, and a batch is split into samples of 1; leave "
              "dimension 0 open or 1 in the model, or run without splitting");
    EXPECT_EQ(refused.detail(Detail::kInput), "x");
  }
  EXPECT_TRUE(three.run({item("x", x, Shape{3, 2})}));
}

TEST(SessionBatch, SamplesThatEndInsideAByteAreRefused) {
  constexpr int kOnnxUint4 = 21;
  SessionBench bench("null:rk3588");
  for (const bool open : {false, true}) {
    const testing::OnnxBuilder::Dim rows =
        open ? testing::OnnxBuilder::Dim("N") : testing::OnnxBuilder::Dim(std::int64_t{1});
    Session session = testing::make_session(testing::OnnxBuilder()
                                                .input("x", {rows, std::int64_t{3}}, kOnnxUint4)
                                                .output("y", {rows, std::int64_t{3}}, kOnnxUint4)
                                                .node("Relu", {"x"}, {"y"})
                                                .build(),
                                            bench.options());
    const std::vector<std::uint8_t> x(5, 0x21);
    const auto batch = [&](std::int64_t samples) {
      const Shape shape{samples, 3};
      const std::size_t size = dtype_bytes(DType::kU4, *shape.elements());
      return session.run_batch({{"x", {x.data(), size, DType::kU4, shape, {}, {}}, nullptr}});
    };
    const auto three = batch(3);
    ASSERT_FALSE(three);
    EXPECT_EQ(three.error().code(), Code::kUnsupported) << three.error().to_string();
    EXPECT_TRUE(batch(1));
  }
}

TEST(SessionBatch, OutputsOfOpenModelsArePutTogetherAfterwards) {
  SessionBench bench("null:rk3588");
  Session session = testing::make_session(testing::relu_model({std::string("N"), std::int64_t{2}}),
                                          bench.options());
  const std::vector<float> x = ramp(6);
  const Outputs outputs = session.run_batch({item("x", x, Shape{3, 2})}).value();
  EXPECT_EQ(outputs.front().shape, (Shape{3, 2}));
  EXPECT_EQ(floats_of(outputs.front()), x);
}

TEST(SessionBatch, ItsCallbackKeepsItsPlace) {
  SessionBench bench("null:rk3588?a=10ms");
  SessionOptions options = bench.options();
  options.schedule = {0, 1};
  options.max_queue_size = 16;
  Session session = bench.session(options);
  CallbackLog log;
  const std::vector<float> x = ramp(16);
  ASSERT_EQ(session.run_batch_async({item("x", x, Shape{4, 4})}, log.callback(bench)).value(), 0U);
  ASSERT_EQ(session.run_async(feed_of(bench.x), log.callback(bench)).value(), 4U);
  bench.run_out(session);
  EXPECT_THAT(log.tasks(), ElementsAre(0, 4));
  EXPECT_THAT(log.times(), ElementsAre(20, 30));
}

/// Each job is done when it is submitted; `delivered(n)` is called in the submitting thread when
/// the task of job number `n` has been delivered, before anything else is done there.
class DeliveringDevice final : public device::ForwardingDevice {
 public:
  DeliveringDevice(std::shared_ptr<Device> inner, std::function<void(int)> delivered)
      : ForwardingDevice(std::move(inner)), delivered_(std::move(delivered)) {}

  Result<std::shared_ptr<device::Queue>> make_queue(const device::QueueOptions& options) override {
    CORELANE_ASSIGN(auto queue, ForwardingDevice::make_queue(options));
    return std::make_shared<DeliveringQueue>(std::move(queue), *this);
  }

 private:
  struct DoneJob final : device::Completion {
    bool done() const noexcept override { return job->done(); }
    bool released() const noexcept override { return job->released(); }
    bool wait(TimePoint until) override { return job->wait(until); }
    bool wait_released(TimePoint until) override { return job->wait_released(until); }
    Status status() const override { return job->status(); }
    device::JobRecord record() const override { return job->record(); }
    bool cancel() override { return job->cancel(); }
    void on_done(std::function<void(device::Completion&)> f) override {
      job->on_done(std::move(f));
      device->delivered_(number);
    }
    std::shared_ptr<device::Completion> job;
    DeliveringDevice* device = nullptr;
    int number = 0;
  };
  struct DeliveringQueue final : device::ForwardingQueue {
    DeliveringQueue(std::shared_ptr<Queue> queue, DeliveringDevice& on)
        : ForwardingQueue(std::move(queue), on.inner()), device(on) {}
    Result<std::shared_ptr<device::Completion>> submit(const device::Submission& job) override {
      auto done = std::make_shared<DoneJob>();
      CORELANE_ASSIGN(done->job, ForwardingQueue::submit(job));
      done->job->wait();
      done->device = &device;
      done->number = device.jobs_++;
      return done;
    }
    DeliveringDevice& device;
  };

  const std::function<void(int)> delivered_;
  std::atomic<int> jobs_{0};
};

TEST(SessionBatch, IsCalledBackBeforeASessionThatClosesIsQuiet) {
  SessionBench bench("null:rk3588", false);
  CallbackLog log;
  Session session;
  Status closed = error(Code::kWrongState, "not yet");
  std::size_t called_back = 0;
  SessionOptions options = bench.options();
  options.load.on = std::make_shared<DeliveringDevice>(bench.device, [&](int n) {
    if (n != 1) return;
    closed = session.close();
    const std::lock_guard lock(log.mutex);
    called_back = log.entries.size();
  });
  session = bench.session(options);
  const std::vector<float> x = ramp(8);
  ASSERT_EQ(session.run_batch_async({item("x", x, Shape{2, 4})}, log.callback(bench)).value(), 0U);
  EXPECT_TRUE(closed.ok()) << closed.to_string();
  EXPECT_EQ(called_back, 1U);
  session.wait_callbacks();
}

TEST(SessionPipeline, CallKReturnsTheOutputsOfCallKMinusDepth) {
  SessionBench bench("null:rk3588");
  Session session = bench.session(bench.options());
  for (int k = 0; k < 10; ++k) {
    const std::vector<float> x = {static_cast<float>(k), 0, 0, 0};
    const auto outputs = session.run_pipeline(feed_of(x)).value();
    if (k < 3) {
      EXPECT_FALSE(outputs.has_value());
    } else {
      ASSERT_TRUE(outputs.has_value());
      EXPECT_EQ(floats_of(outputs->front())[0], static_cast<float>(k - 3));
    }
  }
  const auto rest = session.flush();
  ASSERT_EQ(rest.size(), 3U);
  EXPECT_EQ(floats_of(rest[0]->front())[0], 7);
  EXPECT_EQ(floats_of(rest[2]->front())[0], 9);
  EXPECT_TRUE(session.flush().empty());
}

TEST(SessionPipeline, ResetOrAnotherDepthDropsWhatIsPending) {
  SessionBench bench("null:rk3588");
  Session session = bench.session(bench.options());
  const Feed feed = feed_of(bench.x);
  EXPECT_FALSE(session.run_pipeline(feed, 1)->has_value());
  EXPECT_TRUE(session.run_pipeline(feed, 1)->has_value());
  EXPECT_FALSE(session.run_pipeline(feed, 1, true)->has_value());
  EXPECT_TRUE(session.run_pipeline(feed, 1)->has_value());
  EXPECT_FALSE(session.run_pipeline(feed, 2)->has_value());
  EXPECT_FALSE(session.run_pipeline(feed, 2)->has_value());
  EXPECT_TRUE(session.run_pipeline(feed, 2)->has_value());
  EXPECT_EQ(session.run_pipeline(feed, 0).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(session.statistics().accepted, 7U);
}

TEST(SessionPipeline, AFailureIsThatOfTheCallThatReturnsTheTask) {
  SessionBench bench("null:rk3588?fail=2");
  Session session = bench.session(bench.options());
  const Feed feed = feed_of(bench.x);
  EXPECT_FALSE(session.run_pipeline(feed, 1)->has_value());  // Task 0.
  EXPECT_TRUE(session.run_pipeline(feed, 1)->has_value());   // Task 1 fails, gives 0.
  EXPECT_EQ(session.run_pipeline(feed, 1).error().code(), Code::kEngineFailed);
  EXPECT_TRUE(session.run_pipeline(feed, 1).has_value());
  EXPECT_EQ(session.drain().code(), Code::kEngineFailed);  // Task 3.
  EXPECT_TRUE(session.drain().ok());
}

}  // namespace
}  // namespace corelane
