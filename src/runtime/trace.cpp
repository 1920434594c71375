#include "corelane/runtime/trace.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "corelane/base/printable.h"

namespace corelane {
namespace {

using Json = nlohmann::ordered_json;

/// One track of processes for the device, one of threads for each core; the numbers are the
/// trace's.
constexpr int kProcess = 1;

/// The unit of the trace event format.
double microseconds(Duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

bool ran(const device::JobRecord& r) { return r.core_bits != 0; }

Json metadata(const char* what, int track, const std::string& name) {
  return {
      {"name", what}, {"ph", "M"}, {"pid", kProcess}, {"tid", track}, {"args", {{"name", name}}}};
}

Json arguments(const device::JobRecord& r) {
  return {{"job", r.id},
          {"tag", r.tag},
          {"priority", r.priority},
          {"batch", r.batch},
          {"queue_depth", r.queue_depth},
          {"status", code_name(r.code)},
          {"bytes_in", r.bytes_in},
          {"bytes_out", r.bytes_out}};
}

/// What a job is shown as.
std::string name_of(const TraceSpan& span) { return span.label.empty() ? "job" : span.label; }

/// One job, or a part of it, on one core.
struct Bar {
  const TraceSpan* span;
  std::size_t core;
  TimePoint started, ended;
};

/// The bars of all jobs. A core's do not go back: a part of one job may run after a part of a job
/// that began later.
void add_bars(Json& events, const std::vector<TraceSpan>& spans, TimePoint origin,
              std::size_t cores) {
  std::vector<Bar> bars;
  for (const TraceSpan& span : spans)
    device::for_each_stretch(span.record, [&](const device::JobPart& part) {
      for (std::size_t core = 0; core < cores; ++core)
        if (((part.core_bits >> core) & 1U) != 0)
          bars.push_back({&span, core, part.started, part.ended});
    });
  std::ranges::stable_sort(bars, {}, &Bar::started);
  for (const Bar& bar : bars)
    events.push_back({{"name", name_of(*bar.span)},
                      {"cat", "run"},
                      {"ph", "X"},
                      {"pid", kProcess},
                      {"tid", static_cast<int>(bar.core)},
                      {"ts", microseconds(bar.started - origin)},
                      {"dur", microseconds(bar.ended - bar.started)},
                      {"args", arguments(bar.span->record)}});
}

/// An async pair, so that those of several jobs may overlap.
void add_pair(Json& events, const std::string& name, const char* category, std::uint64_t id,
              Duration begin, Duration end, Json args) {
  Json event = {
      {"name", name}, {"cat", category},          {"ph", "b"}, {"id", id}, {"pid", kProcess},
      {"tid", 0},     {"ts", microseconds(begin)}};
  Json last = event;
  if (!args.empty()) event["args"] = std::move(args);
  events.push_back(std::move(event));
  last["ph"] = "e";
  last["ts"] = microseconds(end);
  events.push_back(std::move(last));
}

/// The time in the queue.
void add_wait(Json& events, const TraceSpan& span, TimePoint origin) {
  const device::JobRecord& r = span.record;
  add_pair(events, name_of(span) + " queued", "queue", r.id, r.queued - origin,
           (ran(r) ? r.started : r.ended) - origin,
           {{"queue_depth", r.queue_depth}, {"tag", r.tag}});
}

/// The conversions; a stamp that is not there is the clock's zero.
void add_host(Json& events, const TraceSpan& span, TimePoint origin) {
  const auto add = [&](const char* what, TimePoint begin, TimePoint end) {
    if (begin != TimePoint{} && begin <= end)
      add_pair(events, name_of(span) + what, "host", span.record.id, begin - origin, end - origin,
               {});
  };
  add(" copy in", span.host.copy_in, span.host.copied_in);
  add(" copy out", span.host.copy_out, span.host.copied_out);
}

/// Escapes of a label value in the text exposition format: backslash, quote, line end; and other
/// control characters as printable() writes them.
std::string prometheus_label(const std::string& text) {
  std::string out;
  for (const char c : printable_lines(text)) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string chrome_trace(const device::DeviceInfo& info, std::span<const TraceSpan> spans) {
  std::vector<TraceSpan> sorted(spans.begin(), spans.end());
  const auto start = [](const TraceSpan& s) {
    return ran(s.record) ? s.record.started : s.record.queued;
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const TraceSpan& a, const TraceSpan& b) { return start(a) < start(b); });
  // Times count from the first event: a clock since boot would leave the viewer with an empty
  // start.
  TimePoint origin = kNever;
  for (const TraceSpan& s : sorted) {
    origin = std::min({origin, s.record.queued, start(s)});
    if (s.host.copy_in != TimePoint{}) origin = std::min(origin, s.host.copy_in);
  }

  Json events = Json::array();
  events.push_back(metadata("process_name", 0, info.instance));
  for (std::size_t i = 0; i < info.cores.size(); ++i)
    events.push_back(metadata("thread_name", static_cast<int>(i), info.cores[i].name));
  for (const TraceSpan& span : sorted) {
    add_wait(events, span, origin);
    add_host(events, span, origin);
  }
  add_bars(events, sorted, origin, info.cores.size());
  const Json trace = {{"traceEvents", std::move(events)},
                      {"displayTimeUnit", "ms"},
                      {"otherData",
                       {{"device", info.instance},
                        {"profile", info.profile},
                        {"engine", info.engine},
                        {"isa", info.isa}}}};
  // Names come from models and may hold any bytes; the viewer needs valid UTF-8.
  return trace.dump(-1, ' ', true, Json::error_handler_t::replace);
}

DurationSummary summarize(std::vector<Duration> samples) {
  DurationSummary s;
  s.count = samples.size();
  if (samples.empty()) return s;
  std::sort(samples.begin(), samples.end());
  // Nearest rank: the smallest sample with at least p of all at or below it. Per mille, in
  // integers, so that no rounding moves a rank.
  const auto rank = [&](std::size_t per_mille) {
    const std::size_t position = (samples.size() * per_mille + 999) / 1000;
    return samples[std::clamp<std::size_t>(position, 1, samples.size()) - 1];
  };
  s.min = samples.front();
  s.max = samples.back();
  s.p50 = rank(500);
  s.p90 = rank(900);
  s.p95 = rank(950);
  s.p99 = rank(990);
  s.p999 = rank(999);
  // Nanoseconds of many samples may exceed 64 bits.
  long double sum = 0;
  for (const Duration d : samples) sum += static_cast<long double>(d.count());
  const long double mean = sum / static_cast<long double>(samples.size());
  s.mean = Duration(static_cast<Duration::rep>(mean));
  long double square = 0;
  for (const Duration d : samples) {
    const long double off = static_cast<long double>(d.count()) - mean;
    square += off * off;
  }
  s.deviation = Duration(
      static_cast<Duration::rep>(std::sqrt(square / static_cast<long double>(samples.size()))));
  return s;
}

std::vector<double> core_shares(std::span<const device::JobRecord> records, std::size_t cores) {
  std::vector<double> shares(cores, 0.0);
  TimePoint first = kNever;
  TimePoint last = TimePoint::min();
  for (const device::JobRecord& r : records) {
    if (!ran(r)) continue;
    first = std::min(first, r.started);
    last = std::max(last, r.ended);
  }
  // No job ran.
  if (last <= first) return shares;
  const double whole = microseconds(last - first);
  for (const device::JobRecord& r : records)
    device::for_each_stretch(r, [&](const device::JobPart& part) {
      for (std::size_t core = 0; core < cores; ++core)
        if (((part.core_bits >> core) & 1U) != 0)
          shares[core] += microseconds(part.ended - part.started) / whole;
    });
  return shares;
}

std::string prometheus_text(const device::DeviceInfo& info,
                            const device::DeviceCounters& counters) {
  const std::string device = prometheus_label(info.instance);
  std::string text;
  const auto counter = [&](const char* name, const char* help, std::uint64_t value) {
    text += fmt::format(
        "# HELP corelane_{0} {1}\n# TYPE corelane_{0} counter\n"
        "corelane_{0}{{device=\"{2}\"}} {3}\n",
        name, help, device, value);
  };
  counter("jobs_submitted_total", "Jobs submitted since the device was opened.",
          counters.submitted);
  counter("jobs_completed_total", "Jobs completed, with any status.", counters.completed);
  counter("jobs_failed_total", "Jobs completed with an error.", counters.failed);
  counter("jobs_abandoned_total", "Jobs given up at their deadline or by a reset.",
          counters.abandoned);
  counter("core_resets_total", "Core resets.", counters.resets);
  text +=
      "# HELP corelane_core_busy_seconds_total Time each core ran jobs.\n"
      "# TYPE corelane_core_busy_seconds_total counter\n";
  for (std::size_t i = 0; i < counters.busy.size(); ++i) {
    const std::string name = i < info.cores.size() ? info.cores[i].name : std::to_string(i);
    text += fmt::format("corelane_core_busy_seconds_total{{device=\"{}\",core=\"{}\"}} {:.9f}\n",
                        device, prometheus_label(name),
                        std::chrono::duration<double>(counters.busy[i]).count());
  }
  return text;
}

}  // namespace corelane
