#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <utility>

#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/driver/forwarding_device.h"
#include "device/registry/device_wrappers.h"

namespace corelane::drivers::faulty {
namespace {

using device::Completion;
using device::Executable;
using device::Fence;
using device::Image;
using device::OpenOptions;
using device::parse_faults;
using device::Submission;
using device::TensorRef;
using device::wrap_faulty;

/// The null device, which copies its input, below a faulty one.
struct Bench {
  explicit Bench(std::string_view faults) {
    OpenOptions own;
    own.own_instance = true;
    device = wrap_faulty(*device::open_device("null:rk3588", own), *parse_faults(faults));
    Image image;
    image.kind = "null";
    image.bytes = as_byte_span("input x f32 1,4\noutput y f32 1,4\n");
    executable = *device->prepare(image, {});
    queue = *device->make_queue({});
  }
  Submission job() const {
    Submission submission;
    submission.executable = executable;
    submission.bindings = *executable->new_bindings();
    return submission;
  }
  std::shared_ptr<device::Device> device;
  std::shared_ptr<Executable> executable;
  std::shared_ptr<device::Queue> queue;
};

int bits_set(const TensorRef& tensor) {
  int count = 0;
  for (std::size_t i = 0; i < tensor.size; ++i)
    count += __builtin_popcount(static_cast<const unsigned char*>(tensor.data)[i]);
  return count;
}

TEST(FaultyDevice, FlipInvertsOneBitBeforeAnybodySeesTheResult) {
  Bench bench("flip=1");
  const Submission job = bench.job();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(bench.queue->run(job).ok());
    EXPECT_EQ(bits_set(*job.bindings->output(0)), 1);
  }
  Submission submitted = bench.job();
  auto fence = std::make_shared<Fence>();
  submitted.signal = {fence};
  int seen = -1;
  auto completion = *bench.queue->submit(submitted);
  completion->on_done([&](Completion&) { seen = bits_set(*submitted.bindings->output(0)); });
  ASSERT_TRUE(completion->wait_released());
  ASSERT_TRUE(fence->wait());
  EXPECT_EQ(seen, 1);
  EXPECT_TRUE(completion->status().ok());
}

TEST(FaultyDevice, AShortResultIsABadResult) {
  Bench bench("short=1");
  device::JobRecord record;
  EXPECT_EQ(bench.queue->run(bench.job(), &record).code(), Code::kBadResult);
  EXPECT_EQ(record.code, Code::kBadResult);
  Submission submitted = bench.job();
  auto fence = std::make_shared<Fence>();
  submitted.signal = {fence};
  auto completion = *bench.queue->submit(submitted);
  Code seen = Code::kOk;
  completion->on_done([&](Completion& done) { seen = done.status().code(); });
  ASSERT_TRUE(completion->wait_released());
  EXPECT_EQ(seen, Code::kBadResult);
  ASSERT_TRUE(fence->wait());
  EXPECT_EQ(fence->status().code(), Code::kBadResult);
}

/// A job of the device below that is done, but has not called anybody yet.
class HeldCompletion final : public Completion {
 public:
  HeldCompletion(std::shared_ptr<Completion> inner, std::function<void()>& call)
      : inner_(std::move(inner)), call_(call) {}
  bool done() const noexcept override { return inner_->done(); }
  bool released() const noexcept override { return inner_->released(); }
  bool wait(TimePoint until) override { return inner_->wait(until); }
  bool wait_released(TimePoint until) override { return inner_->wait_released(until); }
  Status status() const override { return inner_->status(); }
  device::JobRecord record() const override { return inner_->record(); }
  bool cancel() override { return inner_->cancel(); }
  void on_done(std::function<void(Completion&)> f) override {
    call_ = [this, f = std::move(f)] { f(*this); };
  }

 private:
  const std::shared_ptr<Completion> inner_;
  std::function<void()>& call_;
};

class HeldQueue final : public device::ForwardingQueue {
 public:
  HeldQueue(std::shared_ptr<device::Queue> inner, std::shared_ptr<device::Device> device,
            std::function<void()>& call)
      : ForwardingQueue(std::move(inner), std::move(device)), call_(call) {}
  Result<std::shared_ptr<Completion>> submit(const Submission& job) override {
    CORELANE_ASSIGN(std::shared_ptr<Completion> completion, inner().submit(job));
    completion->wait();
    return std::make_shared<HeldCompletion>(std::move(completion), call_);
  }

 private:
  std::function<void()>& call_;
};

class HeldDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Result<std::shared_ptr<device::Queue>> make_queue(const device::QueueOptions& options) override {
    CORELANE_ASSIGN(std::shared_ptr<device::Queue> queue, inner()->make_queue(options));
    return std::make_shared<HeldQueue>(std::move(queue), inner(), call);
  }
  std::function<void()> call;  ///< Ends the job that was submitted last.
};

TEST(FaultyDevice, DrainWaitsForWhatStrikesAJob) {
  OpenOptions own;
  own.own_instance = true;
  const auto held = std::make_shared<HeldDevice>(*device::open_device("null:rk3588", own));
  const auto device = wrap_faulty(held, *parse_faults("short=1"));
  Submission job;
  job.executable =
      *device->prepare({"null", as_byte_span("input x f32 1,4\noutput y f32 1,4\n")}, {});
  const auto queue = *device->make_queue({});
  for (int round = 0; round < 2; ++round) {
    job.bindings = *job.executable->new_bindings();
    const auto completion = *queue->submit(job);
    EXPECT_FALSE(completion->done());
    EXPECT_EQ(queue->depth(), 1U);
    EXPECT_FALSE(queue->drain(device->clock()->now()));
    std::exchange(held->call, nullptr)();
    EXPECT_EQ(queue->depth(), 0U);
    EXPECT_TRUE(queue->drain());
    EXPECT_EQ(completion->status().code(), Code::kBadResult);
  }
}

TEST(FaultyDevice, OutOfMemoryStrikesAllocations) {
  Bench bench("flip=0");
  auto device = wrap_faulty(bench.device, *parse_faults("oom=1"));
  EXPECT_EQ(device->create_buffer(16, {}).error().code(), Code::kOutOfMemory);
  Image image;
  image.kind = "null";
  image.bytes = as_byte_span("input x f32 1,4\n");
  EXPECT_EQ((*device->prepare(image, {}))->new_bindings().error().code(), Code::kOutOfMemory);
}

TEST(FaultyDevice, ObjectsOfTheDeviceBelowAreRefused) {
  Bench one("flip=0.5");
  Bench two("flip=0.5");
  EXPECT_EQ(one.queue->run(two.job()).code(), Code::kInvalidArgument);
  EXPECT_EQ(one.queue->submit({}).error().code(), Code::kInvalidArgument);
  Submission job = one.job();
  job.bindings =
      *(*one.device->prepare({"null", as_byte_span("input x f32 1\n")}, {}))->new_bindings();
  EXPECT_EQ(one.queue->run(job).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace corelane::drivers::faulty
