/// A queue that checks each submission and passes it on.
#pragma once

#include <memory>

#include "corelane/driver/forwarding_device.h"

namespace corelane::drivers::validating {

/// Leaves to the device what only it knows: whether executable and bindings are its own.
class ValidatingQueue final : public device::ForwardingQueue {
 public:
  ValidatingQueue(std::shared_ptr<device::Queue> inner, std::shared_ptr<device::Device> device)
      : ForwardingQueue(std::move(inner), device), cores_(device->info().cores.size()) {}

  Result<std::shared_ptr<device::Completion>> submit(const device::Submission& job) override;
  Status run(const device::Submission& job, device::JobRecord* record) override;

 private:
  Status check(const device::Submission& job) const;

  const std::size_t cores_;
};

}  // namespace corelane::drivers::validating
