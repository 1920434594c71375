#include "edge/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>

#include "corelane/base/printable.h"
#include "corelane/runtime/trace.h"

namespace corelane::edge {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kColumns =
    "Sample,queueDepth,numInfInQueue,devInfPerSec,devExecUs,devInWaitTimeUs,devOutWaitTimeUs,"
    "hostRoundTripUs,enqTimeUs,preProcTimeUs,submitTimeUs,execTotalUs,exectoVcUs,execToCompleteUs,"
    "postProcUs,totalRoundtripTimeUs";

bool there(TimePoint stamp) noexcept { return stamp != TimePoint{}; }
/// 0 where one of them is not there.
Duration between(TimePoint from, TimePoint to) noexcept {
  return there(from) && there(to) && to > from ? to - from : Duration{0};
}
double us(Duration d) noexcept { return std::chrono::duration<double, std::micro>(d).count(); }
/// The first that is there.
TimePoint first_of(std::initializer_list<TimePoint> stamps) noexcept {
  const auto* const found = std::ranges::find_if(stamps, there);
  return found != stamps.end() ? *found : TimePoint{};
}

/// In microseconds with three digits, which are exact. Not by fmt and doubles: a period has tens of
/// thousands of rows, and its report is late by what they take.
void append_us(std::string& text, Duration d) {
  const fmt::format_int whole(d.count() / 1000);
  const int rest = static_cast<int>(d.count() % 1000);
  const std::array<char, 4> digits{'.', static_cast<char>('0' + rest / 100),
                                   static_cast<char>('0' + rest / 10 % 10),
                                   static_cast<char>('0' + rest % 10)};
  text.append(whole.data(), whole.size());
  text.append(digits.data(), digits.size());
}

void append_row(std::string& text, std::size_t number, const SetRecord& r) {
  const TimePoint enqueued = first_of({r.run.enqueued, r.submitted});
  const TimePoint back = first_of({r.run.copy_out, r.completed});
  const Duration exec = between(r.job.started, r.job.ended);
  const double rate = exec > Duration{0} ? 1e6 / us(exec) : 0;
  fmt::format_to(std::back_inserter(text), "{},{},{},{:.3f}", number, r.job.queue_depth,
                 r.in_flight, rate);
  const std::array<Duration, 12> columns{
      exec,
      between(r.job.queued, r.job.started),
      between(r.job.ended, back),
      between(r.job.queued, back),
      between(r.submitted, enqueued),
      between(r.run.copy_in, r.run.copied_in),
      between(first_of({r.run.copied_in, enqueued}), r.job.queued),
      between(enqueued, r.completed),
      Duration{0},
      between(r.job.started, r.completed),
      between(r.run.copy_out, r.run.copied_out),
      between(r.submitted, r.collected)};
  for (const Duration column : columns) {
    text += ',';
    append_us(text, column);
  }
  text += '\n';
}

std::vector<Duration> times_of(const ProfileReport& report,
                               const std::function<Duration(const SetRecord&)>& time) {
  std::vector<Duration> times;
  times.reserve(report.samples.size());
  for (const ProfileSample& sample : report.samples) times.push_back(time(sample.record));
  return times;
}

/// A device's description for reports without one.
device::DeviceInfo device_of(const ProfileReport& report) {
  if (!report.samples.empty()) return report.samples.front().program->device;
  return report.programs.empty() ? device::DeviceInfo{} : report.programs.front()->device;
}

Json header(const char* schema, const ProfileReport& report) {
  Json programs = Json::array();
  for (const auto& one : report.programs)
    programs.push_back(
        {{"program", one->number}, {"name", one->name}, {"device", one->device.instance}});
  return {{"schema", schema},
          {"version", 1},
          {"name", report.handle},
          {"programs", std::move(programs)},
          {"samples", report.samples.size()},
          {"dropped", report.dropped}};
}

/// Names come from users and may hold any bytes.
std::string text_of(const Json& json) {
  return json.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

/// A stamp of the device's clock in nanoseconds; 0: the inference did not get that far.
std::int64_t stamp(TimePoint t) { return t.time_since_epoch().count(); }

Json summary(const std::vector<Duration>& times) {
  const DurationSummary s = summarize(times);
  return {{"min", us(s.min)}, {"mean", us(s.mean)}, {"p50", us(s.p50)}, {"p90", us(s.p90)},
          {"p95", us(s.p95)}, {"p99", us(s.p99)},   {"max", us(s.max)}};
}

}  // namespace

std::string latency_report(const ProfileReport& report) {
  std::string programs;
  for (const auto& one : report.programs)
    programs += fmt::format("{}{} {} on {}", programs.empty() ? "" : "; ", one->number,
                            printable(one->name), one->device.instance);
  const DurationSummary total = summarize(
      times_of(report, [](const SetRecord& r) { return between(r.submitted, r.collected); }));
  std::string text = fmt::format(
      "Corelane latency report {}\nPrograms: {}\nSamples: {} Dropped: {}\n"
      "totalRoundtripTimeUs: mean {:.3f} p50 {:.3f} p95 {:.3f} p99 {:.3f}\n{}\n",
      printable(report.handle), programs, report.samples.size(), report.dropped, us(total.mean),
      us(total.p50), us(total.p95), us(total.p99), kColumns);
  for (std::size_t i = 0; i < report.samples.size(); ++i)
    append_row(text, i + 1, report.samples[i].record);
  return text;
}

std::string trace_report(const ProfileReport& report) {
  std::vector<TraceSpan> spans;
  spans.reserve(report.samples.size());
  // What the device did not take has no place on its time line.
  for (const ProfileSample& sample : report.samples)
    if (sample.record.job.id != 0)
      spans.push_back({sample.record.job, sample.program->name, sample.record.run});
  return chrome_trace(device_of(report), spans);
}

std::string raw_report(const ProfileReport& report) {
  Json json = header("corelane.device_stats", report);
  Json& rows = json["records"] = Json::array();
  for (const auto& [program, r] : report.samples)
    rows.push_back({{"program", program->number},
                    {"id", r.id},
                    {"handle", r.handle},
                    {"attempts", r.attempts},
                    {"status", code_name(r.code)},
                    {"in_flight", r.in_flight},
                    {"job", r.job.id},
                    {"cores", r.job.core_bits},
                    {"queue_depth", r.job.queue_depth},
                    {"batch", r.job.batch},
                    {"priority", r.job.priority},
                    {"bytes_in", r.job.bytes_in},
                    {"bytes_out", r.job.bytes_out},
                    {"submitted_ns", stamp(r.submitted)},
                    {"enqueued_ns", stamp(r.run.enqueued)},
                    {"copy_in_ns", stamp(r.run.copy_in)},
                    {"copied_in_ns", stamp(r.run.copied_in)},
                    {"queued_ns", stamp(r.job.queued)},
                    {"started_ns", stamp(r.job.started)},
                    {"ended_ns", stamp(r.job.ended)},
                    {"copy_out_ns", stamp(r.run.copy_out)},
                    {"copied_out_ns", stamp(r.run.copied_out)},
                    {"completed_ns", stamp(r.completed)},
                    {"collected_ns", stamp(r.collected)}});
  return text_of(json);
}

std::string kpi_report(const ProfileReport& report) {
  Json json = header("corelane.device_kpi", report);
  std::vector<device::JobRecord> jobs;
  std::size_t failed = 0;
  TimePoint first = kNever, last{};
  for (const ProfileSample& sample : report.samples) {
    jobs.push_back(sample.record.job);
    if (sample.record.code != Code::kOk) ++failed;
    first = std::min(first, sample.record.submitted);
    last = std::max(last, sample.record.collected);
  }
  const Duration span = last > first ? last - first : Duration{0};
  const device::DeviceInfo device = device_of(report);
  json["device"] = device.instance;
  json["failed"] = failed;
  json["span_us"] = us(span);
  json["inferences_per_second"] =
      span > Duration{0} ? static_cast<double>(report.samples.size()) * 1e6 / us(span) : 0.0;
  json["exec_us"] = summary(
      times_of(report, [](const SetRecord& r) { return between(r.job.started, r.job.ended); }));
  json["wait_us"] = summary(
      times_of(report, [](const SetRecord& r) { return between(r.job.queued, r.job.started); }));
  json["total_us"] = summary(
      times_of(report, [](const SetRecord& r) { return between(r.submitted, r.collected); }));
  json["core_shares"] = core_shares(jobs, device.cores.size());
  return text_of(json);
}

namespace {

/// By ProfileKind.
struct ReportKind {
  std::string (*write)(const ProfileReport&);
  const char* name;    ///< Of its files.
  const char* ending;  ///< Of its files.
};
constexpr std::array<ReportKind, 4> kKinds{{{&latency_report, "latency", "txt"},
                                            {&trace_report, "trace", "json"},
                                            {&raw_report, "raw", "json"},
                                            {&kpi_report, "kpi", "json"}}};

}  // namespace

std::string profile_report(ProfileKind kind, const ProfileReport& report) {
  return kKinds.at(static_cast<std::size_t>(kind)).write(report);
}

std::string profile_file_name(ProfileKind kind, const std::string& prefix, std::uint32_t number,
                              const std::string& part) {
  const ReportKind& row = kKinds.at(static_cast<std::size_t>(kind));
  return fmt::format("{}-{}-{}{}.{}", prefix, number, row.name, part, row.ending);
}

}  // namespace corelane::edge
