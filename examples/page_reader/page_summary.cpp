#include "page_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "work_queue.h"

namespace page_reader {
namespace {

using corelane::Duration;
using corelane::device::JobRecord;
using Json = nlohmann::ordered_json;

double milliseconds(Duration d) { return static_cast<double>(d.count()) / 1e6; }
double seconds(Duration d) { return static_cast<double>(d.count()) / 1e9; }

std::string placement_text(const LoadedModel& model) {
  switch (model.program.placement()) {
    case corelane::device::Placement::kReplicated:
      return "replicated";
    case corelane::device::Placement::kShared:
      return "shared";
    case corelane::device::Placement::kOpaque:
      break;
  }
  return "opaque";
}

bool ran(const JobRecord& record) { return record.core_bits != 0; }

/// From the first start to the last end.
Duration span_of(std::span<const JobRecord> records) {
  corelane::TimePoint first = corelane::TimePoint::max(), last = corelane::TimePoint::min();
  for (const JobRecord& r : records) {
    if (!ran(r)) continue;
    first = std::min(first, r.started);
    last = std::max(last, r.ended);
  }
  return last > first ? last - first : Duration{0};
}

Json box_json(const Box& box) { return {box.left, box.top, box.right, box.bottom}; }

Json line_json(const TextLine& line) {
  Json quad = Json::array();
  for (const Point& p : line.box.quad) quad.push_back({p.x, p.y});
  return {{"text", line.text.text},
          {"score", line.text.score},
          {"quad", quad},
          {"box_score", line.box.score},
          {"upside_down", line.direction.upside_down}};
}

Json summary_json(const RunSummary& summary) {
  Json models = Json::array();
  for (const ModelShare& m : summary.models)
    models.push_back({{"model", m.name},
                      {"placement", m.placement},
                      {"count", m.times.count},
                      {"p50_ms", milliseconds(m.times.p50)},
                      {"p99_ms", milliseconds(m.times.p99)},
                      {"core_share", m.core_share}});
  return {{"pages", summary.pages},
          {"lines", summary.lines},
          {"seconds", seconds(summary.reading)},
          {"lines_per_second", summary.lines_per_second},
          {"core_busy", summary.busy},
          {"models", models}};
}

}  // namespace

std::vector<ModelShare> model_shares(const ModelSet& models) {
  std::vector<ModelShare> shares;
  for (const LoadedModel& model : models)
    shares.push_back({model.name, placement_text(model), {}, 0});
  return shares;
}

RunSummary summarize_run(std::vector<ModelShare> models, std::span<const JobRecord> records,
                         std::size_t cores, std::span<const PageResult> results, Duration reading) {
  RunSummary summary;
  summary.busy = corelane::core_shares(records, cores);
  summary.span = span_of(records);
  summary.reading = reading;
  summary.pages = results.size();
  for (const PageResult& page : results) summary.lines += page.lines.size();
  if (reading.count() > 0)
    summary.lines_per_second = static_cast<double>(summary.lines) / seconds(reading);
  summary.models = std::move(models);
  const double offered = seconds(summary.span) * static_cast<double>(cores);
  for (std::size_t m = 0; m < summary.models.size(); ++m) {
    std::vector<Duration> times;
    double core_seconds = 0;
    for (const JobRecord& r : records) {
      if (!ran(r) || index_of(role_of(r.tag)) != m) continue;
      times.push_back(r.ended - r.started);
      core_seconds += seconds(r.ended - r.started) * std::popcount(r.core_bits);
    }
    summary.models[m].times = corelane::summarize(std::move(times));
    summary.models[m].core_share = offered > 0 ? core_seconds / offered : 0;
  }
  return summary;
}

std::string summary_table(const RunSummary& summary, const corelane::device::DeviceInfo& device) {
  std::string text = fmt::format("{:<12} {:>6} {:>10} {:>10} {:>11}  {}\n", "model", "count", "p50",
                                 "p99", "core share", "weights");
  for (const ModelShare& m : summary.models) {
    text += fmt::format("{:<12} {:>6} {:>7.2f} ms {:>7.2f} ms {:>9.1f} %  {}\n", m.name,
                        m.times.count, milliseconds(m.times.p50), milliseconds(m.times.p99),
                        m.core_share * 100, m.placement);
  }
  text += fmt::format("cores of {}:", device.instance);
  for (std::size_t i = 0; i < summary.busy.size(); ++i) {
    const std::string name =
        i < device.cores.size() ? device.cores[i].name : fmt::format("core{}", i);
    text += fmt::format("{} {} busy {:.0f} %", i == 0 ? "" : ",", name, summary.busy[i] * 100);
  }
  text += fmt::format("\n{} lines on {} page{} in {:.2f} s: {:.1f} lines per second\n",
                      summary.lines, summary.pages, summary.pages == 1 ? "" : "s",
                      seconds(summary.reading), summary.lines_per_second);
  return text;
}

std::vector<corelane::TraceSpan> trace_spans(std::span<const JobRecord> records) {
  std::vector<corelane::TraceSpan> spans;
  for (const JobRecord& record : records) {
    const Role role = role_of(record.tag);
    if (index_of(role) >= kRoles) continue;
    const bool line = role == Role::kDirection || role == Role::kRecognition;
    spans.push_back({record, fmt::format("{} {} {}", model_sources()[index_of(role)].name,
                                         line ? "line" : "page", item_of(record.tag) + 1)});
  }
  return spans;
}

std::string results_json(const std::string& page, const PageResult& result,
                         std::span<const std::string> labels, const RunSummary& summary,
                         const corelane::device::DeviceInfo& device) {
  Json regions = Json::array();
  for (const Region& r : result.regions)
    regions.push_back({{"label", labels[static_cast<std::size_t>(r.label)]},
                       {"score", r.score},
                       {"box", box_json(r.box)}});
  Json lines = Json::array();
  for (const TextLine& line : result.lines) lines.push_back(line_json(line));
  const Json all{{"page", page},
                 {"device", device.instance},
                 {"engine", device.engine},
                 {"width", result.width},
                 {"height", result.height},
                 {"orientation",
                  {{"degrees", result.orientation.degrees},
                   {"score", result.orientation.score},
                   {"quarters_turned_back", result.orientation.quarters_back()}}},
                 {"lines", lines},
                 {"regions", regions},
                 {"summary", summary_json(summary)}};
  // Text that is not UTF-8 cannot come from the alphabet; a file name can hold anything.
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace page_reader
