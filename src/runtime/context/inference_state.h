/// One submitted inference: the device's completion, and the conversion of outputs after it.
#pragma once

#include <memory>

#include "corelane/base/clock.h"
#include "corelane/device/completion.h"
#include "corelane/runtime/context.h"
#include "runtime/context/output_copies.h"

namespace corelane {

/// Immutable after submit().
struct InferenceState {
  std::shared_ptr<ContextState> context;
  std::shared_ptr<device::Completion> completion;
  std::shared_ptr<runtime::OutputConversion> conversion;  ///< Null where no output is converted.
  Duration copy_in{};
};

namespace runtime {

/// Queue and device time of a record; zeros where the job never started.
inline RunTimes run_times(const device::JobRecord& record, Duration copy_in, Duration copy_out) {
  RunTimes times{copy_in, {}, {}, copy_out};
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
