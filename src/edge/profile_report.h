/// The texts of profiling reports: latency table, Chrome trace, and JSON with a schema of Corelane.
/// Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "edge/profile_samples.h"

namespace corelane::edge {

/// What a report holds.
enum class ProfileKind : std::uint8_t { kLatency, kTrace, kRaw, kKpi };
/// The prefix of reports' files where users give none.
inline constexpr const char* kProfilePrefix = "aic-profiling-program";

/// Four header lines, the names of the columns, and a row for each sample, divided by commas. A
/// column that is not measured is 0.
std::string latency_report(const ProfileReport& report);
/// Chrome trace of the samples' device; all of one device.
std::string trace_report(const ProfileReport& report);
/// Schema "corelane.device_stats", version 1: the stamps and figures of each sample.
std::string raw_report(const ProfileReport& report);
/// Schema "corelane.device_kpi", version 1: rates, percentiles, shares of the cores.
std::string kpi_report(const ProfileReport& report);
/// The text of a report of this kind.
std::string profile_report(ProfileKind kind, const ProfileReport& report);
/// "<prefix>-<number>-latency<part>.txt", "-trace<part>.json", "-raw<part>.json",
/// "-kpi<part>.json".
std::string profile_file_name(ProfileKind kind, const std::string& prefix, std::uint32_t number,
                              const std::string& part = {});

}  // namespace corelane::edge
