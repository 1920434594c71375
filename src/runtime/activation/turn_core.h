/// The working part of a TurnGroup: the lock around its table, and the fences of jobs that wait.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/sync.h"
#include "corelane/device/core_set.h"
#include "corelane/device/fence.h"
#include "dispatch/callback_thread.h"
#include "runtime/activation/turn_table.h"

namespace corelane::device {
class Device;
struct Submission;
}  // namespace corelane::device

namespace corelane::runtime {

/// All methods from any thread. Fences are signalled without the lock, in the thread that ends a
/// job, adds one or leaves; what is due by time alone, in a thread of the group.
class TurnCore final : public std::enable_shared_from_this<TurnCore> {
 public:
  TurnCore(std::shared_ptr<device::Device> device, const device::CoreSet& cores,
           const TurnGroupOptions& options);
  ~TurnCore();

  const std::shared_ptr<device::Device>& device() const noexcept { return device_; }
  const device::CoreSet& cores() const noexcept { return cores_; }
  /// A mask of the group's cores: those asked for, or for "any N" those that the fewest members
  /// have, and first those that nobody holds exclusively. kInvalidArgument.
  Result<device::CoreSet> choose(const device::CoreSet& asked) const;
  /// A member on these cores, which are the group's; its number. kInvalidArgument (the options),
  /// kCancelled, kWrongState.
  Result<std::size_t> join(const device::CoreSet& cores, const TurnOptions& options);
  /// It has no jobs left.
  void leave(std::size_t member);
  /// A job that is about to be submitted; its number. Outside of the member's turn it gets a fence
  /// to wait for. kCancelled, kWrongState in a forked child.
  Result<std::uint64_t> enter(std::size_t member, device::Submission& job);
  /// The job has ended, or was not submitted. A record without cores: it never ran.
  void end(std::size_t member, std::uint64_t job, const device::JobRecord& record);
  TurnFigures figures(std::size_t member) const;
  void shutdown();

 private:
  using Fences = std::vector<std::shared_ptr<device::Fence>>;
  Status check() const CORELANE_REQUIRES(mutex_);
  /// The fences of the jobs that go now; one without a fence is `entering`, and goes then.
  Fences decide(std::uint64_t entering, bool* goes) CORELANE_REQUIRES(mutex_);
  void watch() CORELANE_REQUIRES(mutex_);
  void time_passed();

  const std::shared_ptr<device::Device> device_;
  const std::shared_ptr<Clock> clock_;
  const device::CoreSet cores_;
  const std::uint64_t process_;
  const std::shared_ptr<dispatch::CallbackThread> thread_;
  mutable Mutex mutex_{LockRank::kTurnGroup};
  TurnTable table_ CORELANE_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, std::shared_ptr<device::Fence>> fences_
      CORELANE_GUARDED_BY(mutex_);
  std::uint64_t last_job_ CORELANE_GUARDED_BY(mutex_) = 0;
  TimePoint due_ CORELANE_GUARDED_BY(mutex_) = kNever;  ///< Of the timer that is set.
  bool ended_ CORELANE_GUARDED_BY(mutex_) = false;
};

}  // namespace corelane::runtime
