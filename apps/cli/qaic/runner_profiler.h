/// What `corelane qaic-runner` profiles: the records of its set, as reports in files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/qaic/runner_options.h"
#include "corelane/device/observer.h"
#include "edge/profile_report.h"

namespace corelane {
class InferenceSet;
}

namespace corelane::cli {

/// One run's reports: for each type one of the first inferences, or for a stream one for each
/// period of the device's clock. Not from two threads, but for what begin() begins.
class RunnerProfiler {
 public:
  /// `options` stays as it is. Types that are given twice count once.
  RunnerProfiler(const RunnerProfiling& options,
                 std::shared_ptr<const edge::ProfiledProgram> program);

  /// The delay and the duration count from here on: take() and finish() may be called.
  void start(TimePoint now);
  /// start(), and take() for each inference of the set that is collected, from a thread of its own,
  /// until finish(). The codes of InferenceSet::observe.
  Status begin(InferenceSet& set);
  /// An inference that was collected, in the order of collection. Reports that are complete are
  /// written.
  void take(const SetRecord& record);
  /// Writes what is left, after the last record. Nothing where no inference was profiled.
  void finish();
  void finish(TimePoint now);

  /// The first file that could not be written; kIo.
  const Status& status() const noexcept { return status_; }
  const std::vector<std::string>& written() const noexcept { return written_; }
  /// Records that came faster than reports were written.
  std::uint64_t dropped() const noexcept { return dropped_; }

 private:
  /// What is known of one profiling type.
  struct Profile {
    edge::ProfileKind kind;
    std::optional<edge::CountCollector> count;
    std::optional<edge::StreamCollector> stream;
    TimePoint boundary{};       ///< Of the stream's current period.
    std::uint64_t reports = 0;  ///< Of the stream, so far.
  };

  bool takes(const SetRecord& record) const;
  /// Reports of the periods that end before `now`, or at it.
  void cut(Profile& profile, TimePoint now);
  void write(Profile& profile, edge::ProfileReport report);

  const RunnerProfiling& options_;
  const std::shared_ptr<const edge::ProfiledProgram> program_;
  std::vector<Profile> profiles_;
  TimePoint from_ = kNever;
  TimePoint until_ = kNever;
  Status status_;
  std::vector<std::string> written_;
  std::uint64_t dropped_ = 0;
  std::shared_ptr<device::Observation> observation_;  ///< Ends before what it calls.
};

}  // namespace corelane::cli
