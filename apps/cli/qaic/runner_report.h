/// What `corelane qaic-runner` prints: figures of a load in the lines that others parse.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace corelane::cli {

struct LoadResult;
struct Sample;

/// A row of the device table, in microseconds.
struct MetricRow {
  std::string metric;
  double avg = 0, min = 0, max = 0, std = 0;
};

/// The rows over `samples`: the time on the device, in its line, in the conversions of inputs and
/// outputs, and from submission to collection. Zeros where there are none.
std::vector<MetricRow> device_metrics(std::span<const Sample> samples);

/// "---- Stats ----" and the line whose last word is the rate: inferences that ended well, each of
/// `batch` samples, over the time of all.
std::string stats_lines(const LoadResult& result, std::uint32_t batch);
/// The table: a title, a line of the columns' names, a line for each row; columns end with commas.
std::string metric_table(const std::vector<MetricRow>& rows);
Json report_json(const LoadResult& result, std::uint32_t batch);

/// Lines during the load, at most one report for each period. Not from two threads.
class LiveReport {
 public:
  struct Options {
    Duration period = std::chrono::seconds(1);
    bool rate = false;
    bool table = false;
  };
  LiveReport(Options options, TimePoint start);
  /// A report on what ended since the latest one, if one is due at `now`; else empty.
  std::string report(const LoadResult& result, TimePoint now);

 private:
  Options options_;
  TimePoint start_;
  TimePoint latest_;
  std::size_t reported_ = 0;
};

}  // namespace corelane::cli
