/// A queue that checks each submission and passes it on.
#pragma once

#include <memory>

#include "corelane/device/device.h"

namespace corelane::device {

/// What needs the device's own knowledge (whether executable and bindings are its) is left to it.
class ValidatingQueue final : public Queue {
 public:
  ValidatingQueue(std::shared_ptr<Queue> inner, std::shared_ptr<Device> device)
      : inner_(std::move(inner)),
        device_(std::move(device)),
        cores_(device_->info().cores.size()) {}

  Result<std::shared_ptr<Completion>> submit(const Submission& job) override;
  Status run(const Submission& job, JobRecord* record) override;
  std::size_t depth() const override { return inner_->depth(); }
  bool drain(TimePoint until) override { return inner_->drain(until); }

 private:
  Status check(const Submission& job) const;

  const std::shared_ptr<Queue> inner_;
  const std::shared_ptr<Device> device_;
  const std::size_t cores_;
};

}  // namespace corelane::device
