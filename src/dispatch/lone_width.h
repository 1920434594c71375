/// How many cores a task takes that is alone.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "corelane/base/clock.h"

namespace corelane::dispatch {

/// Whether a task that is alone is quicker on all cores of a schedule or on one: the start of
/// several threads takes small networks longer than they gain by them. It begins with all, and
/// tries both in turns after some tasks, and again after more, since programs change engine and
/// shapes. A value without a clock.
class LoneWidth {
 public:
  /// `cores`: all of them; at least 1.
  explicit LoneWidth(std::size_t cores) noexcept
      : longest_(kMostCoreTime / static_cast<Duration::rep>(cores)) {}

  /// For each task that is alone, when it starts. `average`: of the tasks before it.
  bool takes_all_cores(Duration average) {
    last_ = Part::kNone;
    if (average > longest_) {
      warm_ = false;
      return all_ || average > kMostCoreTime;
    }
    const bool in_trial = step_ > 0 || warm_;
    if (!in_trial && tasks_++ < (doubted_ ? kFirst : gap_)) return all_;
    short_ = average <= kShort;
    last_ = warm_ || !short_ ? Part::kCounts : Part::kWarmsUp;
    return is_on_all(step_);
  }
  /// The last task that asked has run by itself from its start to its end.
  void ran_alone(Duration time) {
    const Part part = std::exchange(last_, Part::kNone);
    if (part == Part::kNone) return;
    warm_ = part == Part::kWarmsUp;
    if (warm_) return;
    times_[step_] = static_cast<double>(std::max(time, Duration{1}).count());
    if (++step_ == times_.size() || is_clear()) decide();
  }
  /// The last task that asked failed, or another one began beside it. A trial ends by that: its
  /// next task could fail for the same reason, such as a time limit that one core does not meet.
  void gave_up() {
    if (last_ != Part::kNone) end_trial(false);
  }
  /// The last task that asked was given one core to try it.
  bool tries_one() const { return last_ != Part::kNone && !is_on_all(step_); }

  /// Tasks before the first trial, and before one that has to confirm another; before others four
  /// times as many each time, to kMost.
  static constexpr std::uint32_t kFirst = 32;
  static constexpr std::uint32_t kMost = 8192;
  /// A task on one core and one on all. The first pair does not count: the engine may prepare the
  /// network for that number of cores in it.
  static constexpr std::size_t kPairs = 9;
  /// Before each task of a trial whose tasks are no longer than this, another one goes the same way
  /// and does not count: it brings the weights of that way back into the caches.
  static constexpr Duration kShort = std::chrono::milliseconds(2);

 private:
  /// What a task is to a trial.
  enum class Part : std::uint8_t { kNone, kWarmsUp, kCounts };

  /// The time of all cores together up to which tasks are tried: 30 ms on two cores. A longer task
  /// could take so much more on one core that later tasks never gain it back.
  static constexpr Duration kMostCoreTime = std::chrono::milliseconds(60);
  /// One core takes so much longer that a few pairs are enough.
  static constexpr double kClear = 1.5;
  /// The other way has to be quicker by this. One core has to be no slower where tasks are short:
  /// it leaves the others to others. With long tasks a trial lasts long enough to fall into the
  /// time in which the program's engines are compared on the cores that it lacks then.
  static constexpr double kWins = 0.95;

  /// Which of a pair comes first changes as in the Thue-Morse sequence, so that inputs whose sizes
  /// alternate favour neither.
  static constexpr bool is_on_all(std::size_t step) {
    const std::size_t pair = step / 2;
    const bool all_first = pair > 0 && std::popcount(pair - 1) % 2 != 0;
    return (step % 2 != 0) != all_first;
  }
  /// One core by all, of the pair that ends before `step`.
  double ratio_before(std::size_t step) const {
    const bool second_on_all = is_on_all(step - 1);
    return second_on_all ? times_[step - 2] / times_[step - 1]
                         : times_[step - 1] / times_[step - 2];
  }
  /// The first three counted pairs, which have both orders, say that one core takes far longer.
  bool is_clear() const {
    return all_ && step_ == 8 && ratio_before(4) >= kClear && ratio_before(6) >= kClear &&
           ratio_before(8) >= kClear;
  }

  void decide() {
    std::array<double, kPairs - 1> ratios{};
    const std::size_t pairs = step_ / 2 - 1;
    for (std::size_t i = 0; i < pairs; ++i) ratios[i] = ratio_before(2 * i + 4);
    const auto end = ratios.begin() + static_cast<std::ptrdiff_t>(pairs);
    std::sort(ratios.begin(), end);
    const double middle = std::sqrt(ratios[(pairs - 1) / 2] * ratios[pairs / 2]);
    end_trial(all_ ? middle < (short_ ? 1 : kWins) : middle > 1 / kWins);
  }

  void end_trial(bool other_is_quicker) {
    // A second trial has to agree: others may have used the cores during the first one.
    if (other_is_quicker && doubted_) all_ = !all_;
    doubted_ = other_is_quicker && !doubted_;
    last_ = Part::kNone;
    warm_ = false;
    step_ = 0;
    tasks_ = 0;
    if (!doubted_) gap_ = std::min(gap_ * 4, kMost);
  }

  Duration longest_;
  bool all_ = true;
  bool doubted_ = false;        ///< The last trial was for the other way.
  Part last_ = Part::kNone;     ///< Of the task that asked last.
  bool warm_ = false;           ///< The task before went the way that is to be timed.
  bool short_ = false;          ///< Of the tasks of the trial.
  std::uint32_t tasks_ = 0;     ///< Since the last trial.
  std::uint32_t gap_ = kFirst;  ///< Tasks until the next trial, but for one that confirms.
  std::size_t step_ = 0;        ///< Times that the trial has; 0 between trials.
  std::array<double, 2 * kPairs> times_{};
};

}  // namespace corelane::dispatch
