/// Where a task runs: pure functions of the schedule and of what is idle.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "corelane/base/clock.h"

namespace corelane::dispatch {

/// The core of task `t`. The schedule must not be empty.
inline std::size_t core_of_task(std::span<const std::size_t> schedule, std::uint64_t t) {
  return schedule[t % schedule.size()];
}

/// The cores of a schedule, each once, in rising order.
inline std::vector<std::size_t> unique_cores(std::span<const std::size_t> schedule) {
  std::vector<std::size_t> cores(schedule.begin(), schedule.end());
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return cores;
}

/// A context that could take a task now: its core, and how many tasks run there.
struct IdleContext {
  std::int32_t core = -1;
  std::size_t running = 0;
};

/// Which of `idle` (not empty) takes a task whose core by the formula is `wanted`: on the core with
/// the least to do, the wanted one first among equals, then the first.
inline std::size_t least_loaded(std::span<const IdleContext> idle, std::int32_t wanted) {
  std::size_t best = 0;
  const auto rank = [&](std::size_t i) {
    return std::tuple(idle[i].running, idle[i].core != wanted, i);
  };
  for (std::size_t i = 1; i < idle.size(); ++i)
    if (rank(i) < rank(best)) best = i;
  return best;
}

/// Whether a task may take all cores at once: it is alone and those before it were, and tasks take
/// long enough (`average`) for the work of several cores to be worth its start. Where calls
/// overlap, one core each is better, also for a task that finds the others just done.
class AloneInARow {
 public:
  /// For each task when it starts, while `running` run and `waiting` wait.
  bool may_take_all(std::size_t running, std::int64_t waiting, Duration average) {
    constexpr Duration kWorthIt = std::chrono::microseconds(100);
    alone_ = running == 0 && waiting <= 0 ? std::min(alone_ + 1, kEnough) : 0;
    return alone_ == kEnough && average >= kWorthIt;
  }
  /// Tasks in a row, this one counted; the first of all needs none before it.
  static constexpr int kEnough = 8;

 private:
  int alone_ = kEnough;
};

}  // namespace corelane::dispatch
