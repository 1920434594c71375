#include "cli/qaic/runner_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/load_generator.h"

namespace corelane::cli {
namespace {

double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

double rate_of(std::size_t count, Duration time) {
  return static_cast<double>(count) / std::max(1e-9, seconds(time));
}

}  // namespace

std::vector<MetricRow> device_metrics(std::span<const Sample> samples) {
  const auto row = [&](const char* metric, auto get) {
    std::vector<Duration> values;
    values.reserve(samples.size());
    for (const Sample& s : samples) values.push_back(get(s));
    const DurationSummary sum = summarize(std::move(values));
    return MetricRow{metric, to_us(sum.mean), to_us(sum.min), to_us(sum.max), to_us(sum.deviation)};
  };
  return {row("ExecTimeUs_Func_0", [](const Sample& s) { return s.times.device; }),
          row("QueueTimeUs", [](const Sample& s) { return s.times.queue; }),
          row("CopyInTimeUs", [](const Sample& s) { return s.times.copy_in; }),
          row("CopyOutTimeUs", [](const Sample& s) { return s.times.copy_out; }),
          row("LatencyUs", [](const Sample& s) { return s.latency; })};
}

std::string stats_lines(const LoadResult& result, std::uint32_t batch) {
  return fmt::format(
      "---- Stats ----\nInferenceCnt {} TotalDuration {}us BatchSize {} Inf/Sec {:.3f}\n",
      result.samples.size(), result.wall / std::chrono::microseconds(1), batch,
      rate_of(result.samples.size(), result.wall));
}

std::string metric_table(const std::vector<MetricRow>& rows) {
  std::string text = "---- Aggregated Device Metrics Report ----\n";
  text += fmt::format("{:<20}{:>14}{:>14}{:>14}{:>14}\n", "Metric,", "Avg,", "Min,", "Max,", "Std");
  for (const MetricRow& r : rows) {
    const auto cell = [](double us) { return fmt::format("{:.3f},", us); };
    text += fmt::format("{:<20}{:>14}{:>14}{:>14}{:>14.3f}\n", r.metric + ",", cell(r.avg),
                        cell(r.min), cell(r.max), r.std);
  }
  return text;
}

Json report_json(const LoadResult& result, std::uint32_t batch) {
  Json table = Json::array();
  for (const MetricRow& r : device_metrics(result.samples)) {
    table.push_back(
        {{"metric", r.metric}, {"avg", r.avg}, {"min", r.min}, {"max", r.max}, {"std", r.std}});
  }
  return {{"inference_cnt", result.samples.size()},
          {"total_duration_us", result.wall / std::chrono::microseconds(1)},
          {"batch_size", batch},
          {"inf_per_sec", rate_of(result.samples.size(), result.wall)},
          {"device_table", table},
          {"load", summarize_load(result)}};
}

LiveReport::LiveReport(Options options, TimePoint start)
    : options_(options), start_(start), latest_(start) {}

std::string LiveReport::report(const LoadResult& result, TimePoint now) {
  if ((!options_.rate && !options_.table) || now - latest_ < options_.period) return {};
  const auto fresh = std::span(result.samples).subspan(reported_);
  std::string text;
  if (options_.rate) {
    text +=
        fmt::format("{:.1f} s: InferenceCnt {} Failed {} Inf/Sec {:.3f}\n", seconds(now - start_),
                    result.samples.size(), result.failed, rate_of(fresh.size(), now - latest_));
  }
  if (options_.table) text += metric_table(device_metrics(fresh));
  latest_ = now;
  reported_ = result.samples.size();
  return text;
}

}  // namespace corelane::cli
