/// A stream of inferences on a chain.
#pragma once

#include <memory>
#include <vector>

#include "runtime/chain/chain_job.h"

namespace corelane::runtime {

class ChainQueue final : public device::Queue {
 public:
  /// `queues`: one for each member of the device.
  ChainQueue(std::shared_ptr<ChainDevice> device,
             std::vector<std::shared_ptr<device::Queue>> queues,
             const device::QueueOptions& options, std::uint64_t id);

  std::uint64_t id() const noexcept override { return line_->id; }
  Result<std::shared_ptr<device::Completion>> submit(const device::Submission& job) override;
  Status run(const device::Submission& job, device::JobRecord* record) override;
  std::size_t depth() const override;
  bool drain(TimePoint until) override;

 private:
  Result<std::shared_ptr<ChainBindings>> bindings_of(const device::Submission& job) const;
  /// The job of each part, without fences.
  Result<std::vector<device::Submission>> parts_of(const device::Submission& job,
                                                   const ChainBindings& bindings) const;
  device::Queue& queue_of(std::size_t part) const { return *queues_[device_->member_of(part)]; }
  /// kUnsupported where a device's line is too short for the parts on it.
  Status check_room(const ChainExecutable& executable) const;
  std::shared_ptr<device::Fence> link(
      std::vector<device::Submission>& parts,
      const std::vector<std::shared_ptr<device::Fence>>& wait) const;
  Result<std::shared_ptr<device::Fence>> submit_parts(const device::Submission& job,
                                                      std::vector<device::Submission>& parts,
                                                      ChainBindings::Jobs& jobs) const;
  Status run_parts(std::vector<device::Submission>& parts, const ChainExecutable& executable,
                   device::JobRecord& record) const;

  const std::shared_ptr<ChainDevice> device_;
  const std::vector<std::shared_ptr<device::Queue>> queues_;
  const std::shared_ptr<ChainLine> line_;
};

}  // namespace corelane::runtime
