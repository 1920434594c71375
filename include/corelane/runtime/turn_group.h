/// Activations that take turns on cores which are fewer than they want together.
///
///     auto turns = corelane::TurnGroup::create(device).value();
///     corelane::ActivateOptions how;
///     how.turns = turns;
///     how.turn.weight = 3;
///     auto activation = corelane::Activation::create(program, how).value();
///
/// What is submitted while an activation does not have its turn waits in the device, for a fence
/// that is signalled in the turn. Activations whose cores do not meet have their turns at the same
/// time.
///
/// **When a turn begins.** An activation is a candidate while `threshold` of its jobs wait, or one
/// of them for `timeout`. The candidate of the highest priority is first; within a priority the one
/// that has had the least core time for its weight. A candidate that has waited for `longest_wait`
/// goes before all others, the oldest first.
///
/// **When it ends.** With its last job, where a candidate wants its cores; or after its slice,
/// where that candidate is of a higher priority, has waited for `longest_wait`, or is of the same
/// priority and has had less for its weight. Jobs that were let go end first: at most two for each
/// core.
///
/// **Nobody starves.** A candidate has its turn after `longest_wait`, and one slice with its jobs
/// in flight of each other activation of the group, at the latest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/device/core_set.h"

namespace corelane {

namespace device {
class Device;
}
namespace runtime {
class TurnCore;
}

/// How a group is made.
struct TurnGroupOptions {
  /// What its activations share: a mask, or the platform's choice for all.
  device::CoreSet cores = device::CoreSet::platform();
  /// A turn lasts so long at least, while it has jobs. Above 0.
  Duration slice = std::chrono::milliseconds(10);
  /// A candidate that has waited for so long goes first. Above 0.
  Duration longest_wait = std::chrono::milliseconds(500);
};

/// What one activation is in its group.
struct TurnOptions {
  /// So many jobs wait before it is a candidate; at least 1. More than 1 needs a timeout.
  std::size_t threshold = 1;
  /// It is one too when a job has waited for so long; 0: by the threshold alone.
  Duration timeout{0};
  std::int32_t priority = 0;  ///< -128 to 127, higher first.
  /// Its part of the core time beside others of its priority; above 0 and up to 1e6.
  double weight = 1;
};

/// What became of an activation's turns. Times are of the device's clock.
struct TurnFigures {
  std::uint64_t turns = 0;
  /// Turns on cores that another activation had before, of which the cost is known: the time from
  /// the end of the last job there, or the moment when the turn was asked for where that is later,
  /// to the start of the turn's first job.
  std::uint64_t switches = 0;
  Duration cost_total{};
  Duration cost_longest{};
  Duration cost_last{};
  Duration served{};        ///< Core time of its jobs.
  Duration longest_wait{};  ///< From candidate to turn.
};

/// A cheap handle; copies stand for the same group, which activations keep alive. Any thread. In a
/// forked child jobs are refused with kWrongState.
class CORELANE_API TurnGroup {
 public:
  /// Stands for no group.
  TurnGroup() = default;
  /// No cores are held before an activation joins. kInvalidArgument (cores that the device does not
  /// have or that are not named, a slice or a wait of 0).
  static Result<TurnGroup> create(std::shared_ptr<device::Device> device,
                                  const TurnGroupOptions& options = {});
  /// False where it stands for no group.
  explicit operator bool() const noexcept { return core_ != nullptr; }
  /// The cores that are shared: a mask; the empty one where it stands for no group.
  device::CoreSet cores() const noexcept;
  /// Ends the turns: jobs that wait for one end with kCancelled, and so does what is submitted from
  /// now on. Jobs that were let go run on. Also what a user does who cannot wait for the end.
  void shutdown();

 private:
  friend struct ActivationState;
  explicit TurnGroup(std::shared_ptr<runtime::TurnCore> core) : core_(std::move(core)) {}
  std::shared_ptr<runtime::TurnCore> core_;
};

}  // namespace corelane
