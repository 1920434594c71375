/// One submitted inference: the device's completion, and the conversion of outputs after it.
#pragma once

#include <algorithm>
#include <memory>

#include "corelane/base/clock.h"
#include "corelane/device/completion.h"
#include "corelane/runtime/context.h"
#include "runtime/activation/activation_state.h"
#include "runtime/context/output_copies.h"

namespace corelane {

/// Immutable after submit().
struct InferenceState {
  std::shared_ptr<ContextState> context;
  std::shared_ptr<device::Completion> completion;
  std::shared_ptr<runtime::OutputConversion> conversion;  ///< Null where no output is converted.
  /// The end of its run on an activation; gone once the completion has called it.
  std::weak_ptr<ActivationEnd> run_end;
  RunStamps stamps;  ///< Until it was submitted; see stamps_of().
};

namespace runtime {

/// The completion's callbacks may be called in another thread just now: what follows a run, such
/// as the release of its activation, finds it ended.
inline void end_run(const std::weak_ptr<ActivationEnd>& end, const device::Completion& done) {
  if (const auto alive = end.lock()) alive->end(done.record());
}

/// With those of the outputs, once they are converted; `conversion` may be null.
inline RunStamps stamps_of(RunStamps stamps, const OutputConversion* conversion) {
  if (conversion != nullptr && conversion->finished()) {
    stamps.copy_out = conversion->began();
    stamps.copied_out = conversion->ended();
  }
  return stamps;
}

/// Queue and device time of a record; zeros where the job never started.
inline RunTimes run_times(const device::JobRecord& record, const RunStamps& stamps) {
  const auto spent = [](TimePoint begin, TimePoint end) {
    return std::max(end - begin, Duration{});
  };
  RunTimes times{
      spent(stamps.copy_in, stamps.copied_in), {}, {}, spent(stamps.copy_out, stamps.copied_out)};
  if (record.core_bits != 0) {
    times.queue = record.started - record.queued;
    times.device = record.ended - record.started;
  } else {
    times.queue = record.ended - record.queued;
  }
  return times;
}

}  // namespace runtime
}  // namespace corelane
