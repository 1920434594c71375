/// One submitted job of a LanedDevice: what it needs, where it stands, and its completion.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "corelane/device/device.h"

namespace corelane::lanes {

class LanedBindings;
class LanedJob;
class LaneScheduler;

/// What the scheduler knows of a queue; guarded by the scheduler's lock but for the constants.
struct QueueAccount {
  std::uint64_t id = 0;
  std::int32_t priority = 0;
  std::string name;
  std::size_t depth = 0;
  std::condition_variable drained;
};

/// What occupies lanes: a LanedJob, or a blocking run on its caller's stack. Guarded by the lock.
struct LaneOccupant {
  std::uint64_t id = 0;
  std::uint64_t core_bits = 0;
  TimePoint started{};
  LanedBindings* bound = nullptr;
  LanedJob* job = nullptr;  ///< Null for a blocking run.
  bool abandoned = false;
  Status abandon_status;
};

/// Blocked (on fences) -> queued -> granted (has cores) -> running -> finishing (the result is
/// being copied out) -> done. Cancelling, a deadline or a reset leads to done from any of the first
/// four; from running it leaves an abandoned job, which is released when the engine returns.
enum class JobState : std::uint8_t { kBlocked, kQueued, kGranted, kRunning, kFinishing, kDone };

class LanedJob final : public device::Completion,
                       public LaneOccupant,
                       public std::enable_shared_from_this<LanedJob> {
 public:
  LanedJob(LaneScheduler& scheduler, std::shared_ptr<QueueAccount> queue,
           std::shared_ptr<LanedBindings> bindings, const device::Submission& submission);
  ~LanedJob() override;

  bool done() const noexcept override { return done_.load(std::memory_order_acquire); }
  bool released() const noexcept override { return released_.load(std::memory_order_acquire); }
  bool wait(TimePoint until) override;
  bool wait_released(TimePoint until) override;
  Status status() const override;
  device::JobRecord record() const override;
  bool cancel() override;
  void on_done(std::function<void(device::Completion&)> f) override;

  bool has_deadline() const noexcept { return deadline != kNever; }

  // Fixed before submission.
  LaneScheduler& scheduler;
  const std::shared_ptr<QueueAccount> queue;
  const std::shared_ptr<LanedBindings> bindings;  ///< Keeps executable, device and scheduler alive.
  const device::CoreSet cores;
  const TimePoint deadline;
  std::vector<std::shared_ptr<device::Fence>> waits;
  std::vector<std::shared_ptr<device::Fence>> signals;
  bool shadow = false;  ///< Runs on copies of user memory.

 private:
  friend class LaneScheduler;

  // Guarded by the scheduler's lock; what is read after done_ no longer changes then.
  JobState state_ = JobState::kQueued;
  device::JobRecord record_;
  Status status_;
  std::size_t pending_fences_ = 0;
  std::size_t waiters_ = 0;
  Clock::TimerId timer_ = 0;
  std::vector<std::function<void(device::Completion&)>> callbacks_;
  std::condition_variable changed_;
  std::atomic<bool> done_{false};
  std::atomic<bool> released_{false};
};

}  // namespace corelane::lanes
