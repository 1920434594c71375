/// Tasks that are alone, from their start to their end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "corelane/base/clock.h"
#include "dispatch/lone_width.h"
#include "dispatch/placement.h"

namespace corelane::dispatch {

/// Which tasks of a session take all cores of its schedule at once. A value without a clock.
class LoneTasks {
 public:
  /// `cores`: of the schedule, each counted once; at least 1.
  explicit LoneTasks(std::size_t cores) noexcept : width_(cores) {}

  /// A task begins on `context`, while `running` run and `waiting` wait: whether it takes all
  /// cores. `average`: of the tasks before it.
  bool begins(std::size_t context, std::size_t running, std::int64_t waiting, Duration average) {
    // On all cores the other one might have ended by now: it is not counted, and a caller whose
    // tasks come at such a distance keeps them alone.
    const bool beside_a_trial = lone_ && running == 1 && width_.tries_one();
    if (lone_) width_.gave_up();
    const bool alone = row_.may_take_all(beside_a_trial ? 0 : running, waiting, average);
    lone_ = alone && !beside_a_trial ? std::optional(context) : std::nullopt;
    return alone && width_.takes_all_cores(average);
  }
  /// The task on `context` ended. `time`: since it was handed to the device.
  void ends(std::size_t context, bool succeeded, Duration time) {
    if (lone_ != context) return;
    lone_.reset();
    if (succeeded)
      width_.ran_alone(time);
    else
      width_.gave_up();
  }

 private:
  AloneInARow row_;
  LoneWidth width_;
  std::optional<std::size_t> lone_;  ///< The context of a task that has run by itself until now.
};

}  // namespace corelane::dispatch
