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
  /// A task begins on `context`, while `running` run and `waiting` wait: whether it takes all
  /// cores. `average`: of the tasks before it.
  bool begins(std::size_t context, std::size_t running, std::int64_t waiting, Duration average) {
    const bool lone = row_.may_take_all(running, waiting, average);
    lone_ = lone ? std::optional(context) : std::nullopt;
    return lone && width_.takes_all_cores(average);
  }
  /// The task on `context` ended. The time of a failure says nothing about the next task.
  void ends(std::size_t context, bool succeeded, Duration device_time) {
    if (lone_ != context) return;
    lone_.reset();
    if (succeeded) width_.ran_alone(device_time);
  }

 private:
  AloneInARow row_;
  LoneWidth width_;
  std::optional<std::size_t> lone_;  ///< The context of a task that has run by itself until now.
};

}  // namespace corelane::dispatch
