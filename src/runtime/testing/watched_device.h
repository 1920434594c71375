/// A device that keeps what submissions say of callbacks.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "corelane/driver/forwarding_device.h"

namespace corelane::testing {

/// Not for submissions of several threads.
class WatchedDevice : public device::ForwardingDevice {
 public:
  /// An entry for each submission.
  struct Seen {
    std::vector<bool> from_callback;
    std::vector<bool> brief_callbacks;
  };

  using ForwardingDevice::ForwardingDevice;
  Result<std::shared_ptr<device::Queue>> make_queue(const device::QueueOptions& options) override {
    CORELANE_ASSIGN(auto queue, ForwardingDevice::make_queue(options));
    return std::make_shared<WatchedQueue>(std::move(queue), *this);
  }

  const std::shared_ptr<Seen> seen = std::make_shared<Seen>();

 private:
  struct WatchedQueue : device::ForwardingQueue {
    WatchedQueue(std::shared_ptr<Queue> queue, const WatchedDevice& on)
        : ForwardingQueue(std::move(queue), on.inner()), seen(on.seen) {}
    Result<std::shared_ptr<device::Completion>> submit(const device::Submission& job) override {
      seen->from_callback.push_back(job.from_callback);
      seen->brief_callbacks.push_back(job.brief_callbacks);
      return ForwardingQueue::submit(job);
    }
    const std::shared_ptr<Seen> seen;
  };
};

}  // namespace corelane::testing
