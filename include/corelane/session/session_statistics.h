/// What a session has done so far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "corelane/base/clock.h"

namespace corelane {

/// Figures since the session was made.
struct SessionStatistics {
  std::uint64_t accepted = 0;   ///< Tasks.
  std::uint64_t completed = 0;  ///< With any result.
  std::uint64_t failed = 0;     ///< Of these, those with no outputs.
  std::uint64_t cancelled = 0;  ///< Of these, those that never started.
  std::uint64_t rejected = 0;   ///< Submissions that timed out, or were not taken by try_*.
  std::uint64_t paced = 0;      ///< Submissions that were held up by the pace.
  std::uint64_t callbacks = 0;  ///< Returned.
  std::size_t waiting = 0;      ///< Accepted, not started.
  std::size_t running = 0;
  std::size_t pending_callbacks = 0;  ///< Done, callback not returned.
  Duration average_device_time{};     ///< The pace's average; 0 before the first success.
  std::size_t contexts = 0;           ///< In all.
  std::size_t duplicated = 0;         ///< Of these, duplicates of the first.
  /// Tasks by context, and the core of each (-1: the device's choice).
  std::vector<std::uint64_t> tasks_by_context;
  std::vector<std::int32_t> core_of_context;
};

}  // namespace corelane
