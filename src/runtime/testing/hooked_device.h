/// A device that a test asks before each submission.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "corelane/driver/forwarding_device.h"
#include "corelane/runtime/program.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::testing {

/// `before(n, job)`: what `job`, the submission number `n` from 0, fails with; it may wait.
/// `bounded_jobs`: what it says of itself.
class HookedDevice final : public device::ForwardingDevice {
 public:
  using Hook = std::function<Status(std::size_t n, const device::Submission& job)>;
  HookedDevice(std::shared_ptr<Device> inner, Hook before, bool bounded_jobs = false)
      : ForwardingDevice(std::move(inner)),
        info_(ForwardingDevice::info()),
        before_(std::move(before)) {
    info_.capabilities.bounded_jobs = bounded_jobs;
  }

  const device::DeviceInfo& info() const noexcept override { return info_; }

  Result<std::shared_ptr<device::Queue>> make_queue(const device::QueueOptions& options) override {
    CORELANE_ASSIGN(auto queue, ForwardingDevice::make_queue(options));
    return std::make_shared<HookedQueue>(std::move(queue), *this);
  }

  /// y = Relu(x), f32 [1, 4], on this device.
  static Program program(const std::shared_ptr<HookedDevice>& device) {
    const std::string model = relu_model({std::int64_t{1}, std::int64_t{4}});
    LoadOptions load;
    load.on = device;
    load.cache = false;
    return Program::load(as_byte_span(model), load).value();
  }

 private:
  struct HookedQueue final : device::ForwardingQueue {
    HookedQueue(std::shared_ptr<Queue> queue, HookedDevice& on)
        : ForwardingQueue(std::move(queue), on.inner()), hooked(on) {}
    Result<std::shared_ptr<device::Completion>> submit(const device::Submission& job) override {
      CORELANE_TRY(hooked.before_(hooked.submissions_++, job));
      return ForwardingQueue::submit(job);
    }
    HookedDevice& hooked;
  };

  device::DeviceInfo info_;
  const Hook before_;
  std::atomic<std::size_t> submissions_{0};
};

}  // namespace corelane::testing
