/// Traces and statistics from the records of a device: one source for every report.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/status.h"
#include "corelane/device/device.h"
#include "corelane/runtime/run_times.h"

namespace corelane {

/// One bar of a trace: a job on its cores, with a label.
struct TraceSpan {
  device::JobRecord record;
  std::string label;  ///< Model name; falls back to "job".
  RunStamps host{};   ///< Its conversions, shown where it has them.
};

/// Chrome trace JSON (also read by Perfetto): one track per core, spans sorted by start, nested
/// "queued" arrows and conversions on the host as async events. Times in us from the first stamp.
/// Format: the Trace Event Format document of the Chromium project.
CORELANE_API std::string chrome_trace(const device::DeviceInfo& info,
                                      std::span<const TraceSpan> spans);

/// Percentiles (nearest rank) and counts of a set of durations.
struct DurationSummary {
  std::size_t count = 0;
  Duration min{}, p50{}, p90{}, p95{}, p99{}, p999{}, max{}, mean{};
  Duration deviation{};  ///< Standard deviation of these samples, not of what they were drawn from.
};
/// Sorts a copy of `samples`; zeros where there are none.
CORELANE_API DurationSummary summarize(std::vector<Duration> samples);

/// Busy time of each core over [first start, last end], 0..1.
CORELANE_API std::vector<double> core_shares(std::span<const device::JobRecord> records,
                                             std::size_t cores);

/// Prometheus text of a device's counters.
CORELANE_API std::string prometheus_text(const device::DeviceInfo& info,
                                         const device::DeviceCounters& counters);

}  // namespace corelane
