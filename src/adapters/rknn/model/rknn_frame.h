/// A frame: one set of tensors with at most one run in progress. A context has one frame, with
/// RKNN_FLAG_ASYNC_MASK two that take turns.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "corelane/base/clock.h"
#include "corelane/device/fence.h"
#include "corelane/runtime/context.h"

namespace corelane::rknn {

struct Memory;

/// A run in the background that begins when fences of the caller are signalled: its inputs are
/// converted then, in a thread of its own, because the runtime converts in the thread that submits.
class DeferredRun {
 public:
  /// kIo where the system gives no thread.
  static Result<std::unique_ptr<DeferredRun>> start(Context context, RunOptions options,
                                                    const Clock& clock);
  /// Stops waiting for the fences, and waits for the end.
  ~DeferredRun();
  /// Waits until the run is over; false when `until` came first.
  bool wait(TimePoint until) const { return over_.wait(until); }
  /// How it ended, once it is over.
  Status status() const { return over_.status(); }
  /// Stops waiting for the fences, and waits for the end. The run that was abandoned at its
  /// deadline, if it was: it may still hold bound memory.
  std::optional<Inference> stop();

 private:
  explicit DeferredRun(std::vector<std::shared_ptr<device::Fence>> in) : in_(std::move(in)) {}
  Status run(Context& context, RunOptions options, TimePoint until);

  const std::vector<std::shared_ptr<device::Fence>> in_;
  device::Fence over_;
  std::optional<Inference> abandoned_;  ///< Written before `over_` is signalled.
  std::thread thread_;
};

/// Where a frame's run stands. Changed by Runs alone:
///
///   kOver -> kSubmitted or kDeferred    rknn_run, unless the run is over when it returns
///   kSubmitted, kDeferred -> kOver      it succeeded
///   kSubmitted, kDeferred -> kAbandoned it failed, and may not have let go of bound memory
///   kAbandoned -> kOver                 the memory is free, or none is bound
enum class RunState : std::uint8_t {
  kOver,       ///< None goes on: `result` is how the last one ended.
  kSubmitted,  ///< `inference` is on the device.
  kDeferred,   ///< `deferred` waits for a fence of the caller, or runs since.
  kAbandoned,  ///< `result` says how it ended; `inference` may use bound memory yet.
};

struct Frame {
  Context context;
  RunState state = RunState::kOver;
  std::optional<Inference> inference{};     ///< In kSubmitted and kAbandoned.
  std::unique_ptr<DeferredRun> deferred{};  ///< In kDeferred.
  std::uint64_t id = 0;                     ///< Of its last run; 0: it never ran.
  Duration timeout{0};                      ///< Of its last run; 0: none.
  bool own_timeout = false;                 ///< Its caller's; else the environment's.
  Status result{};
  std::vector<std::uint64_t> input_age{};  ///< Which rknn_inputs_set each input's content is from.
  std::vector<std::shared_ptr<Memory>> checked{};  ///< In use by its run, in the checking mode.

  /// A run whose end was not noted yet goes on, or went on.
  bool running() const noexcept {
    return state == RunState::kSubmitted || state == RunState::kDeferred;
  }
};

}  // namespace corelane::rknn
