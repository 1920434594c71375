/// What profiling collects, without locks, threads or a clock of its own: sampling, counting, and
/// the boundaries of reports.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "corelane/base/clock.h"
#include "corelane/device/device.h"
#include "corelane/runtime/set_record.h"

namespace corelane::edge {

/// A program as reports name it.
struct ProfiledProgram {
  std::uint32_t number = 0;  ///< Unique in the process.
  std::string name;
  device::DeviceInfo device;
  std::shared_ptr<Clock> clock;  ///< Of its device: the records' stamps are points of it.
};
using ProfiledPrograms = std::vector<std::shared_ptr<const ProfiledProgram>>;

/// One inference of a program.
struct ProfileSample {
  std::shared_ptr<const ProfiledProgram> program;
  SetRecord record;
};

/// What one report is made of.
struct ProfileReport {
  std::string handle;         ///< Name of the handle; may be empty.
  ProfiledPrograms programs;  ///< Those that are profiled, also without samples.
  std::vector<ProfileSample> samples;
  std::uint64_t dropped = 0;  ///< Samples for which there was no room.
  TimePoint until{};          ///< The boundary, or the end.
};

/// Chooses the first of each `one_in` inferences of each program.
class ProfileSampler {
 public:
  explicit ProfileSampler(std::uint32_t one_in) : one_in_(one_in) {}
  bool take(std::uint32_t program) { return seen_[program]++ % one_in_ == 0; }
  void restart() { seen_.clear(); }

 private:
  const std::uint32_t one_in_;
  std::map<std::uint32_t, std::uint64_t> seen_;
};

/// The first multiple of `period` after `now`.
inline TimePoint next_boundary(TimePoint now, Duration period) {
  return now + (period - now.time_since_epoch() % period);
}

/// Samples up to a number of them.
class CountCollector {
 public:
  explicit CountCollector(std::size_t wanted) : wanted_(wanted) {}
  void start() {
    samples_.clear();
    active_ = true;
  }
  bool active() const noexcept { return active_; }
  /// All samples, where this is the last one that was asked for; collecting has ended then.
  std::optional<std::vector<ProfileSample>> add(ProfileSample sample) {
    if (!active_) return std::nullopt;
    samples_.push_back(std::move(sample));
    if (samples_.size() < wanted_) return std::nullopt;
    return stop();
  }
  /// Ends it: what was collected, nothing where nothing was, or where it had ended.
  std::optional<std::vector<ProfileSample>> stop() {
    const bool any = std::exchange(active_, false) && !samples_.empty();
    return any ? std::optional(std::exchange(samples_, {})) : std::nullopt;
  }

 private:
  const std::size_t wanted_;
  bool active_ = false;
  std::vector<ProfileSample> samples_;
};

/// Samples in periods of the clock.
class StreamCollector {
 public:
  /// The most samples of one period; more are dropped and counted.
  static constexpr std::size_t kMostSamples = std::size_t{1} << 17;

  StreamCollector(std::uint32_t one_in, Duration period) : sampler_(one_in), period_(period) {}
  /// Gives the first boundary.
  TimePoint start(TimePoint now) {
    sampler_.restart();
    samples_.clear();
    due_.clear();
    dropped_ = 0;
    active_ = true;
    return boundary_ = next_boundary(now, period_);
  }
  bool active() const noexcept { return active_; }
  void add(ProfileSample sample) {
    if (!active_ || !sampler_.take(sample.program->number)) return;
    if (samples_.size() < kMostSamples)
      samples_.push_back(std::move(sample));
    else
      ++dropped_;
  }
  /// The boundary has come: a report is due. Gives the next one; those that were missed meanwhile
  /// have no report.
  TimePoint tick(TimePoint now) {
    due_.push_back(boundary_);
    return boundary_ = next_boundary(std::max(now, boundary_), period_);
  }
  /// The samples of the oldest report that is due: those collected no later than its boundary.
  std::optional<ProfileReport> cut() {
    if (due_.empty()) return std::nullopt;
    const TimePoint until = due_.front();
    due_.pop_front();
    const auto later = std::stable_partition(
        samples_.begin(), samples_.end(),
        [&](const ProfileSample& sample) { return sample.record.collected <= until; });
    std::vector<ProfileSample> rest(std::make_move_iterator(later),
                                    std::make_move_iterator(samples_.end()));
    samples_.erase(later, samples_.end());
    return report(std::exchange(samples_, std::move(rest)), until);
  }
  /// Ends it: what is left. After all that is due was cut.
  ProfileReport stop(TimePoint now) {
    active_ = false;
    return report(std::exchange(samples_, {}), now);
  }

 private:
  ProfileReport report(std::vector<ProfileSample> samples, TimePoint until) {
    ProfileReport made;
    made.samples = std::move(samples);
    made.dropped = std::exchange(dropped_, 0);
    made.until = until;
    return made;
  }

  ProfileSampler sampler_;
  const Duration period_;
  bool active_ = false;
  TimePoint boundary_{};
  std::deque<TimePoint> due_;
  std::vector<ProfileSample> samples_;
  std::uint64_t dropped_ = 0;
};

}  // namespace corelane::edge
