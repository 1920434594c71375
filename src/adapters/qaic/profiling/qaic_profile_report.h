/// The texts of profiling reports: latency table, Chrome trace, and JSON with a schema of Corelane.
/// Pure functions.
#pragma once

#include <string>

#include "adapters/qaic/profiling/qaic_profile_samples.h"

namespace corelane::qaic {

/// Four header lines, the names of the columns, and a row for each sample, divided by commas. A
/// column that is not measured is 0.
std::string latency_report(const ProfileReport& report);
/// Chrome trace of the samples' device; all of one device.
std::string trace_report(const ProfileReport& report);
/// Schema "corelane.qaic.device_stats", version 1: the stamps and figures of each sample.
std::string raw_report(const ProfileReport& report);
/// Schema "corelane.qaic.device_kpi", version 1: rates, percentiles, shares of the cores.
std::string kpi_report(const ProfileReport& report);
/// The one of this type.
std::string profile_report(QAicProfilingType type, const ProfileReport& report);
/// "<prefix>-<number>-latency.txt", "-trace.json", "-raw.json", "-kpi.json".
std::string profile_file_name(QAicProfilingType type, const std::string& prefix,
                              QAicProgramID number);

}  // namespace corelane::qaic
