#include <gtest/gtest.h>

#include <cmath>

#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/driver/forwarding_device.h"
#include "device/registry/device_wrappers.h"

namespace corelane::drivers::validating {
namespace {

using device::CoreSet;
using device::Fence;
using device::Image;
using device::OpenOptions;
using device::PrepareOptions;
using device::QueueOptions;
using device::Submission;

struct Bench {
  Bench() {
    OpenOptions own;
    own.own_instance = true;
    device = *device::open_device("null:rk3588", own);
    image.kind = "null";
    image.bytes = as_byte_span("input x f32 1,4\noutput y f32 1,4\n");
    job.executable = *device->prepare(image, {});
    job.bindings = *job.executable->new_bindings();
    queue = *device->make_queue({});
  }
  /// Both ways of submitting refuse the job alike.
  void expect_refused(const Submission& bad) const {
    EXPECT_EQ(queue->run(bad).code(), Code::kInvalidArgument);
    EXPECT_EQ(queue->submit(bad).error().code(), Code::kInvalidArgument);
  }
  std::shared_ptr<device::Device> device;
  std::shared_ptr<device::Queue> queue;
  Image image;
  Submission job;
};

TEST(ValidatingDevice, EachMemberOfASubmissionIsChecked) {
  Bench bench;
  ASSERT_TRUE(bench.queue->run(bench.job).ok());
  Submission bad = bench.job;
  bad.executable = nullptr;
  bench.expect_refused(bad);
  bad = bench.job;
  bad.bindings = nullptr;
  bench.expect_refused(bad);
  for (const CoreSet& cores :
       {CoreSet::of({}), CoreSet::of({3}), CoreSet::any(0), CoreSet::any(4)}) {
    bad = bench.job;
    bad.cores = cores;
    bench.expect_refused(bad);
  }
  for (const int priority : {-129, 128}) {
    bad = bench.job;
    bad.priority = priority;
    bench.expect_refused(bad);
  }
  bad = bench.job;
  bad.batch = 0;
  bench.expect_refused(bad);
  bad = bench.job;
  bad.wait = {nullptr};
  bench.expect_refused(bad);
  bad = bench.job;
  bad.signal = {std::make_shared<Fence>(), nullptr};
  bench.expect_refused(bad);
  EXPECT_TRUE(bench.queue->run(bench.job).ok());
}

/// Reports the engines that a test gives it, and prepares nothing.
class EnginesDevice final : public device::ForwardingDevice {
 public:
  EnginesDevice(std::shared_ptr<device::Device> inner, std::vector<std::string> engines)
      : ForwardingDevice(std::move(inner)), info_(ForwardingDevice::info()) {
    info_.engines = std::move(engines);
  }
  const device::DeviceInfo& info() const noexcept override { return info_; }
  Result<std::shared_ptr<device::Executable>> prepare(const Image&,
                                                      const PrepareOptions& options) override {
    return error(Code::kForeignImage, "asked for '{}'", options.engine);
  }

 private:
  device::DeviceInfo info_;
};

TEST(ValidatingDevice, EnginesThatTheDeviceDoesNotHaveAreRefused) {
  Bench bench;
  const auto code = [&](const std::string& engine, std::vector<std::string> engines) {
    const auto checked =
        device::wrap_validating(std::make_shared<EnginesDevice>(bench.device, std::move(engines)));
    PrepareOptions options;
    options.engine = engine;
    return checked->prepare(bench.image, options).error().code();
  };
  for (const char* engine : {"none", "soonest", "faster:none"})
    EXPECT_EQ(code(engine, {}), Code::kUnsupported) << engine;
  EXPECT_EQ(code("", {}), Code::kForeignImage);
  for (const char* engine : {"", "a", "b", "soonest", "faster:b"})
    EXPECT_EQ(code(engine, {"a", "b"}), Code::kForeignImage) << engine;
  for (const char* engine : {"c", "faster:", "faster:c", "faster:soonest", "auto"})
    EXPECT_EQ(code(engine, {"a", "b"}), Code::kUnsupported) << engine;
}

TEST(ValidatingDevice, OtherArgumentsAreChecked) {
  Bench bench;
  EXPECT_EQ(bench.device->prepare({}, {}).error().code(), Code::kInvalidArgument);
  Image image = bench.image;
  image.bytes = {};
  EXPECT_EQ(bench.device->prepare(image, {}).error().code(), Code::kInvalidArgument);
  image = bench.image;
  image.precompiled = image.bytes;
  EXPECT_EQ(bench.device->prepare(image, {}).error().code(), Code::kInvalidArgument);
  PrepareOptions options;
  options.input_shapes = {{1, -7}};
  EXPECT_EQ(bench.device->prepare(bench.image, options).error().code(), Code::kInvalidArgument);
  options = {};
  options.custom_operators = {{"Op", ""}};
  EXPECT_EQ(bench.device->prepare(bench.image, options).error().code(), Code::kInvalidArgument);
  QueueOptions queue;
  queue.priority = 1000;
  EXPECT_EQ(bench.device->make_queue(queue).error().code(), Code::kInvalidArgument);
  const auto refused = [&](double weight, double cap, Duration window) {
    QueueOptions shares;
    shares.weight = weight;
    shares.time_cap = cap;
    shares.cap_window = window;
    const auto made = bench.device->make_queue(shares);
    return !made && made.error().code() == Code::kInvalidArgument;
  };
  const auto ms = std::chrono::milliseconds(1);
  EXPECT_TRUE(refused(0, 0, ms) && refused(-1, 0, ms) && refused(std::nan(""), 0, ms));
  EXPECT_TRUE(refused(1, 1.5, ms) && refused(1, -1, ms) && refused(1, std::nan(""), ms));
  EXPECT_TRUE(refused(1, 0.5, Duration{}));
  EXPECT_FALSE(refused(0.5, 1, ms));
  EXPECT_EQ(bench.device->reset(CoreSet::of({9})).code(), Code::kInvalidArgument);
  EXPECT_EQ(bench.device->set_trace(SIZE_MAX).code(), Code::kInvalidArgument);
  EXPECT_EQ(bench.device->create_buffer(0, {}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(bench.device->import_user(nullptr, 1).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(bench.device->import_fd(-1, 1, 0).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace corelane::drivers::validating
