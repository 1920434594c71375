/// How many cores a task takes that is alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "corelane/base/clock.h"

namespace corelane::dispatch {

/// Whether a task that is alone is quicker on all cores of a schedule or on one: the start of
/// several threads takes small networks longer than they gain by them. It begins with all, and
/// tries both in turns after some tasks, and again after more, since programs change engine and
/// shapes. A value without a clock.
class LoneWidth {
 public:
  /// For each task that is alone, when it starts. `average`: of the tasks before it.
  bool takes_all_cores(Duration average) {
    // Here one task on one core would cost more than all later ones could gain.
    constexpr Duration kNotTried = std::chrono::milliseconds(30);
    counts_ = false;
    if (average > kNotTried) return true;
    if (!trying_ && tasks_++ < until_) return all_;
    trying_ = counts_ = true;
    return is_on_all(step_);
  }
  /// The last task that asked has run by itself from its start to its end.
  void ran_alone(Duration device_time) {
    if (!counts_) return;
    counts_ = false;
    times_[step_] = static_cast<double>(std::max(device_time, Duration{1}).count());
    if (++step_ == times_.size()) decide();
  }

  /// Tasks before the first trial, and before one that has to confirm another; before others four
  /// times as many each time, to kMost.
  static constexpr std::uint32_t kFirst = 32;
  static constexpr std::uint32_t kMost = 8192;
  /// A task on one core and one on all. The first pair does not count: it makes what a width needs.
  static constexpr std::size_t kPairs = 8;

 private:
  static constexpr bool is_on_all(std::size_t step) { return step % 2 != 0; }

  void decide() {
    // What is in use goes on where the two are alike.
    constexpr double kWins = 0.95;
    std::array<double, kPairs - 1> ratios{};  // One core by all.
    for (std::size_t i = 0; i < ratios.size(); ++i)
      ratios[i] = times_[2 * (i + 1)] / times_[2 * (i + 1) + 1];
    const auto middle = ratios.begin() + ratios.size() / 2;
    std::nth_element(ratios.begin(), middle, ratios.end());
    const bool stays = all_ ? *middle >= kWins : *middle <= 1 / kWins;
    // A second trial has to agree: others may have used the cores during the first one.
    const bool again = !stays && !doubted_;
    if (!stays && doubted_) all_ = !all_;
    doubted_ = again;
    trying_ = false;
    step_ = 0;
    tasks_ = 0;
    if (!again) gap_ = std::min(gap_ * 4, kMost);
    until_ = again ? kFirst : gap_;
  }

  bool all_ = true;
  bool doubted_ = false;  ///< The last trial was for the other way.
  bool trying_ = false;
  bool counts_ = false;      ///< The time of the task that asked last is one of the trial.
  std::uint32_t tasks_ = 0;  ///< Since the last trial.
  std::uint32_t gap_ = kFirst;
  std::uint32_t until_ = kFirst;  ///< Tasks between the last trial and the next.
  std::size_t step_ = 0;
  std::array<double, 2 * kPairs> times_{};
};

}  // namespace corelane::dispatch
