/// One context of a session, and the core it stands for: binds the tensors of a call, runs it, and
/// collects its outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "corelane/runtime/context.h"
#include "corelane/session/session.h"
#include "session/tasks/call.h"
#include "session/tasks/session_model.h"
#include "tensor/tensor_pool.h"

namespace corelane::session {

/// Used by the thread that took it from the idle ones: one call at a time. A deadline counts the
/// time of binding too, which may prepare a new shape.
class SessionWorker {
 public:
  /// `model` and `options` outlive it.
  SessionWorker(Context context, const SessionModel& model, const SessionOptions& options,
                device::CoreSet cores, std::int32_t core, std::size_t index);

  std::int32_t core() const noexcept { return core_; }
  std::size_t index() const noexcept { return index_; }
  /// The shapes of its last call's inputs; only where they may change.
  const std::vector<Shape>& shapes() const noexcept { return shapes_; }

  /// Cores of the runs to come; without them, its own again.
  void widen(std::optional<device::CoreSet> cores) noexcept { wide_ = cores; }
  /// Binds and submits; collect() follows when the inference is done. Cores and timeout of
  /// `options` are set here.
  Result<Inference> start(Call& call, RunOptions options, TimePoint deadline, const Clock& clock);
  /// Binds, and runs in this thread where the core is idle; collect() follows.
  Status run(Call& call, RunOptions options, TimePoint deadline, const Clock& clock);
  /// A failure of a run as its caller sees it: the caller's arguments passed the session's checks
  /// and the caller's time is not over, so a driver's code that says otherwise becomes
  /// kEngineFailed with the driver's failure as its cause.
  static Status of_run(Status status, TimePoint deadline, const Clock& clock);
  /// The same for the run in progress, whose own end is SessionOptions::run_timeout.
  Status ended(Status status, TimePoint deadline, const Clock& clock) const;
  /// Copies the outputs that were not written in place.
  Status collect(Call& call);

  /// Memory of earlier results, kept for later ones. Any thread.
  std::size_t idle_bytes() const { return pool_.idle_bytes(); }
  /// The times of the last run(); zeros when it did not reach the device.
  const RunTimes& times() const noexcept { return times_; }

 private:
  Status bind(Call& call);
  Status bind_inputs(const Call& call);
  Status bind_memory(CallOutput& output);
  Status bind_output(CallOutput& output);
  Status choose_shapes(const Call& call);
  /// kTimeout when the deadline has passed.
  Status set_limits(RunOptions& options, TimePoint deadline, const Clock& clock);
  /// Binds, in a new context where an abandoned inference keeps this one.
  Status bind_or_renew(Call& call);
  Status unbind_unwanted();

  Context context_;
  const SessionModel& model_;
  const SessionOptions& options_;
  const device::CoreSet cores_;
  RunTimes times_;
  TimePoint run_end_ = kNever;  ///< Of the run in progress, by SessionOptions::run_timeout.
  std::optional<device::CoreSet> wide_;
  const std::int32_t core_;
  const std::size_t index_;
  TensorPool pool_;                  ///< Of results.
  std::vector<Shape> shapes_;        ///< Of the inputs now; only where they may change.
  std::vector<TensorDesc> outputs_;  ///< For these shapes.
  std::vector<bool> bound_;          ///< Outputs bound by an earlier call.
  std::vector<bool> wanted_;         ///< Outputs of this call, which may stay bound.
};

}  // namespace corelane::session
