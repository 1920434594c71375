/// A program of a container on one device: loaded and activated by command, or by its first run.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <string>

#include "adapters/qaic/api/qaic_handle.h"
#include "adapters/qaic/program/qaic_attempts.h"
#include "adapters/qaic/program/qaic_placement.h"
#include "adapters/qaic/program/qaic_program_states.h"
#include "base/sync.h"
#include "corelane/runtime/activation.h"
#include "corelane/runtime/program.h"

namespace corelane::qaic {

class BufferPlan;
class ContextObject;
class GroupGate;
class ProfileTap;
class QpcObject;

/// What a program is made of.
struct ProgramParts {
  std::shared_ptr<ContextObject> context;
  Placement on;
  std::shared_ptr<QpcObject> qpc;
  std::size_t index = 0;  ///< Of the container.
  std::string name;
  AttemptRules rules;
  std::shared_ptr<GroupGate> gate;  ///< Of its group; null: it is of none.
};

/// All functions from any thread. Loading and activating are done by one thread at a time, without
/// the lock; others that want the same wait for it.
class ProgramObject : public Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::kProgram;
  using Handle = QAicProgram;

  explicit ProgramObject(ProgramParts parts);
  ~ProgramObject() override;

  /// Reports a failure of the device to the context's error handler, once.
  Status load();
  /// kBusy while execution objects live, or while it is active.
  Status unload();
  /// Loads it first. From here on the end of the last execution object does not deactivate it.
  Status activate();
  /// kBusy while execution objects live.
  Status deactivate();
  /// As activate(), in this way. Of a program of a group, its group alone may call it: activate()
  /// and deactivate() are kWrongState there.
  Status activate_as(const ActivateOptions& how);
  /// For its group: also while execution objects live, whose submissions are refused then.
  void deactivate_in_group();
  /// Zeros where it takes no turns, or is not active.
  TurnFigures turn_figures();

  /// What runs on it need: an activation, and a number that is another for each.
  struct Active {
    Activation activation;
    std::uint64_t generation = 0;
  };
  /// `automatic`: loads and activates it where that was not done; else kWrongState. kDeviceLost
  /// since its device was lost, until it is loaded again.
  Result<Active> active(bool automatic);

  /// An execution object lives, or is gone.
  void add_exec();
  void remove_exec();
  /// An inference has ended.
  void count_completed() noexcept { completed_.fetch_add(1, std::memory_order_relaxed); }

  QAicProgramInfo info();
  std::uint64_t completed() const noexcept { return completed_.load(std::memory_order_relaxed); }
  const ProgramParts& parts() const noexcept { return parts_; }
  const std::shared_ptr<const BufferPlan>& plan() const noexcept { return plan_; }
  /// Its inferences, for those who profile it.
  const std::shared_ptr<ProfileTap>& tap() const noexcept { return tap_; }

 private:
  class Change;
  /// What failed, and as what the error handler hears of it.
  struct Step {
    Status status;
    QAicErrorType type = QAIC_ERROR_PROGRAM_RUNTIME_LOAD_FAILED;
  };
  void look();
  Step load_now();
  Step activate_now(const ActivateOptions& how = {});
  Status of_group() const;
  Status told(const Step& step) const;
  void deactivate_if_idle();

  const ProgramParts parts_;
  const std::shared_ptr<const BufferPlan> plan_;
  const QAicProgramID id_;
  const std::shared_ptr<ProfileTap> tap_;
  std::atomic<std::uint64_t> completed_{0};

  mutable Mutex mutex_{LockRank::kLeaf};
  std::condition_variable changed_;  ///< `changing_` is false.
  bool changing_ CORELANE_GUARDED_BY(mutex_) = false;
  ProgramStates states_ CORELANE_GUARDED_BY(mutex_);
  Program program_ CORELANE_GUARDED_BY(mutex_);
  Activation activation_ CORELANE_GUARDED_BY(mutex_);
  std::uint64_t generation_ CORELANE_GUARDED_BY(mutex_) = 0;
  std::uint32_t loaded_id_ CORELANE_GUARDED_BY(mutex_) = 0;
  /// Losses of the device before it was loaded.
  std::uint64_t losses_ CORELANE_GUARDED_BY(mutex_) = 0;
  std::size_t execs_ CORELANE_GUARDED_BY(mutex_) = 0;
  bool by_command_ CORELANE_GUARDED_BY(mutex_) = false;
};

/// Loads a program of a container.
Result<Program> load_program(const ProgramParts& parts);

}  // namespace corelane::qaic
