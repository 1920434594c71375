/// Watching an inference set: one record for each inference that was collected, or has completed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/device/figures.h"
#include "corelane/runtime/run_times.h"

namespace corelane {

/// Where one inference of a set came by, and when, from its submission to its collector. Stamps are
/// points of the device's clock, in this order: submitted, run.enqueued, run.copy_in,
/// run.copied_in, job.queued, job.started, job.ended, run.copy_out, run.copied_out, completed,
/// collected. Those of `run` and `job` are of the last attempt, and TimePoint{} where it did not
/// come: `job.id` is 0 where the device did not take it.
struct SetRecord {
  std::uint64_t id = 0;    ///< As submitted.
  std::size_t handle = 0;  ///< SetHandle::index().
  std::uint32_t attempts = 0;
  Code code = Code::kOk;
  std::size_t in_flight = 0;  ///< Of the set, this one included, when it was submitted.
  TimePoint submitted{};      ///< To the set.
  RunStamps run;
  device::JobRecord job;  ///< Its queue_depth: jobs that waited in the device then.
  TimePoint completed{};  ///< It could be collected.
  TimePoint collected{};  ///< Its collector or callback got it; at completion the same as that.
};

/// What an observer of a set wants.
struct SetObserverOptions {
  /// Called from one thread of the set that runs no inferences, within some 5 ms, one at a time, in
  /// the order in which they were collected, or completed, with no lock held. It may call any
  /// function, and end the subscription; an exception is logged and dropped.
  std::function<void(const SetRecord&)> on_record;
  /// True: on_record gets an inference when it has completed, whether or not somebody collects it.
  /// False: when it is collected, or given to its callback.
  bool at_completion = false;
  std::uint32_t one_in = 1;  ///< The first of each n.
  /// Records that may wait to be delivered; 1 to 2^20. What comes while so many wait is dropped and
  /// counted.
  std::size_t ring = 1024;
};

}  // namespace corelane
