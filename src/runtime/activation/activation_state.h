/// What the handles of one activation share, and its jobs on their way.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/sync.h"
#include "corelane/device/device.h"
#include "corelane/runtime/activation.h"

namespace corelane {

struct ProgramState;
namespace runtime {
class StateStore;
class TurnCore;
}  // namespace runtime

/// Any thread. Nothing is prepared or made resident under the lock.
struct ActivationState {
  static Result<std::shared_ptr<ActivationState>> create(std::shared_ptr<ProgramState> program,
                                                         const ActivateOptions& options);
  /// The member of a group has left it before its residence goes.
  ~ActivationState();
  ActivationState(const ActivationState&) = delete;
  ActivationState& operator=(const ActivationState&) = delete;

  const std::shared_ptr<ProgramState>& program() const noexcept { return program_; }
  /// A mask; another one after a loss, where the user named no cores and others have taken these.
  device::CoreSet cores() const;
  /// What stays between runs of its contexts; null where the program keeps nothing.
  const std::shared_ptr<runtime::StateStore>& states() const noexcept { return states_; }
  /// What `asked` is on the activation's cores. kInvalidArgument.
  Result<device::CoreSet> cores_for(const device::CoreSet& asked) const;
  /// The executable resides on the cores from now on. After a loss of the device the residence is
  /// made anew.
  Status admit(const std::shared_ptr<device::Executable>& executable);
  /// See Activation::release().
  void release();
  ActivationFigures figures() const;

 private:
  friend class ActivationEnd;
  friend class ActivationRun;
  class Change;
  ActivationState() = default;
  Status hold(const ActivateOptions& options);
  Status begin_run();
  /// Ends a run and sets `ended`; does nothing where that is set.
  void end_run(bool& ended);
  Status released() const;
  /// After a loss.
  Result<std::shared_ptr<device::Residence>> reside_again(device::Executable& executable) const;
  /// The residence's cores become the activation's.
  void take_up(const device::Residence& residence) CORELANE_REQUIRES(mutex_);

  std::shared_ptr<ProgramState> program_;
  std::shared_ptr<runtime::StateStore> states_;
  device::CoreSet asked_;  ///< The cores as its user asked for them.
  device::Residency residency_ = device::Residency::kExclusive;
  std::shared_ptr<runtime::TurnCore> turns_;
  std::size_t member_ = 0;  ///< Of turns_.
  mutable Mutex mutex_{LockRank::kLeaf};
  device::CoreSet cores_ CORELANE_GUARDED_BY(mutex_);    ///< A mask.
  device::CoreSet default_ CORELANE_GUARDED_BY(mutex_);  ///< The program's wish on them.
  std::shared_ptr<device::Residence> residence_ CORELANE_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<device::Executable>> admitted_ CORELANE_GUARDED_BY(mutex_);
  bool changing_ CORELANE_GUARDED_BY(mutex_) = false;
  bool released_ CORELANE_GUARDED_BY(mutex_) = false;
  std::size_t runs_ CORELANE_GUARDED_BY(mutex_) = 0;  ///< ActivationRuns that have not ended.
  std::condition_variable changed_;                   ///< `changing_` is false.
};

/// The end of a submitted run, for each who sees that its job is done: the completion's first
/// callback, which owns it, and before they go on those that wait or are called back.
class ActivationEnd {
 public:
  ActivationEnd(std::shared_ptr<ActivationState> activation, std::uint64_t job) noexcept
      : activation_(std::move(activation)), job_(job) {}
  /// The first call counts. The run has ended when any of them returns; in a turn group when that
  /// of the completion's callback does. Any thread.
  void end(const device::JobRecord& record);

 private:
  const std::shared_ptr<ActivationState> activation_;
  const std::uint64_t job_;
  std::atomic<bool> turn_ended_{false};
  bool ended_ = false;  ///< Guarded by the activation's lock.
};

/// A job of an activation, from before its submission to its end: it keeps the cores held, and is
/// counted in the turns. Without end() it ends as one that never ran.
class ActivationRun {
 public:
  /// A run of no activation: all functions do nothing.
  ActivationRun() = default;
  /// Sets the job's cores to what `asked` is on those of the activation; outside of the turn, adds
  /// a fence to wait for. kInvalidArgument, kCancelled, kWrongState.
  static Result<ActivationRun> begin(std::shared_ptr<ActivationState> activation,
                                     const device::CoreSet& asked, device::Submission& job);
  ActivationRun(ActivationRun&& other) noexcept = default;
  ActivationRun& operator=(ActivationRun&& other) noexcept;
  ~ActivationRun() {
    if (activation_ != nullptr) end({});
  }

  void end(const device::JobRecord& record);
  /// Ends with the completion. Null: of no activation. Does not fail.
  std::weak_ptr<ActivationEnd> end_with(device::Completion& completion) &&;

 private:
  std::shared_ptr<ActivationState> activation_;  ///< Null: of no activation, or ended.
  std::uint64_t job_ = 0;
};

}  // namespace corelane
