/// A queue of a LanedDevice: checks a submission and hands it to the scheduler.
#pragma once

#include <memory>
#include <optional>

#include "lanes/laned_bindings.h"

namespace corelane::lanes {

class LanedDevice;
class LanedJob;
struct QueueAccount;

class LanedQueue final : public device::Queue {
 public:
  LanedQueue(std::shared_ptr<LanedDevice> device, std::shared_ptr<QueueAccount> account)
      : device_(std::move(device)), account_(std::move(account)) {}

  std::uint64_t id() const noexcept override { return account_->id; }
  Result<std::shared_ptr<device::Completion>> submit(const device::Submission& job) override;
  Status run(const device::Submission& job, device::JobRecord* record) override;
  std::size_t depth() const override;
  bool drain(TimePoint until) override;

 private:
  Status check(const device::Submission& job) const;
  /// The job's bindings, checked, acquired and with memory for all tensors.
  Result<Acquired> acquire(const device::Submission& job) const;
  /// The status of a job that ran in this thread, its bindings released; nullopt: it must join the
  /// line.
  std::optional<Status> run_here(const device::Submission& job, Acquired& bindings, bool only_brief,
                                 device::JobRecord* record);
  Result<std::shared_ptr<LanedJob>> enqueue(const device::Submission& job, Acquired bindings,
                                            bool caller_waits);

  const std::shared_ptr<LanedDevice> device_;
  const std::shared_ptr<QueueAccount> account_;
};

}  // namespace corelane::lanes
