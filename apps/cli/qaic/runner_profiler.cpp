#include "cli/qaic/runner_profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "corelane/base/file.h"
#include "corelane/runtime/inference_set.h"

namespace corelane::cli {
namespace {

/// A value of --aic-profiling-type that is built.
struct RunnerProfileType {
  const char* name;
  edge::ProfileKind kind;
  bool stream;
};
constexpr std::array<RunnerProfileType, 5> kTypes{{
    {"latency", edge::ProfileKind::kLatency, false},
    {"trace", edge::ProfileKind::kTrace, false},
    {"raw_device_stats", edge::ProfileKind::kRaw, false},
    {"latency_stream", edge::ProfileKind::kLatency, true},
    {"trace_stream", edge::ProfileKind::kTrace, true},
}};

/// Records may wait while a report is written.
constexpr std::size_t kRing = std::size_t{1} << 16;

Duration milliseconds_of(double ms) { return Duration(static_cast<std::int64_t>(ms * 1e6)); }

std::uint32_t one_in(const std::string& sampling_rate) {
  const auto* const found = std::ranges::find(kSamplingRates, sampling_rate);
  return 1U << static_cast<unsigned>(found - kSamplingRates.begin());
}

}  // namespace

RunnerProfiler::RunnerProfiler(const RunnerProfiling& options,
                               std::shared_ptr<const edge::ProfiledProgram> program)
    : options_(options), program_(std::move(program)) {
  for (const RunnerProfileType& type : kTypes) {
    if (std::ranges::find(options.types, type.name) == options.types.end()) continue;
    Profile& made = profiles_.emplace_back();
    made.kind = type.kind;
    if (type.stream)
      made.stream.emplace(one_in(options.sampling_rate),
                          std::chrono::milliseconds(std::stoll(options.reporting_rate)));
    else
      made.count.emplace(options.samples);
  }
}

void RunnerProfiler::start(TimePoint now) {
  from_ = now + milliseconds_of(options_.start_delay_ms);
  if (options_.duration_ms > 0) until_ = from_ + milliseconds_of(options_.duration_ms);
  for (Profile& profile : profiles_) {
    if (profile.count) profile.count->start();
    // A stream that begins with an inference waits for it.
    if (profile.stream && options_.start_iteration == 0)
      profile.boundary = profile.stream->start(from_);
  }
}

Status RunnerProfiler::begin(InferenceSet& set) {
  start(program_->clock->now());
  if (profiles_.empty()) return {};
  SetObserverOptions wanted;
  wanted.on_record = [this](const SetRecord& record) { take(record); };
  wanted.ring = kRing;
  CORELANE_ASSIGN(observation_, set.observe(std::move(wanted)));
  return {};
}

bool RunnerProfiler::takes(const SetRecord& record) const {
  return record.id >= options_.start_iteration && record.submitted >= from_ &&
         record.collected <= until_;
}

void RunnerProfiler::take(const SetRecord& record) {
  const bool taken = takes(record);
  for (Profile& profile : profiles_) {
    if (profile.stream) {
      if (taken && !profile.stream->active())
        profile.boundary = profile.stream->start(record.submitted);
      // What is collected at a boundary belongs to the period that ends there.
      cut(profile, std::min(record.collected - Duration{1}, until_));
      if (taken) profile.stream->add({program_, record});
    } else if (taken) {
      if (auto all = profile.count->add({program_, record})) {
        edge::ProfileReport report;
        report.samples = *std::move(all);
        write(profile, std::move(report));
      }
    }
  }
}

void RunnerProfiler::cut(Profile& profile, TimePoint now) {
  // A period without a sample has a report too.
  while (profile.stream->active() && profile.boundary <= now) {
    profile.boundary = profile.stream->tick(profile.boundary);
    while (auto report = profile.stream->cut()) write(profile, *std::move(report));
  }
}

void RunnerProfiler::finish() {
  if (observation_ != nullptr) {
    // First: records on their way belong to the reports, and may still be dropped.
    observation_->flush();
    dropped_ = observation_->dropped();
    observation_.reset();
  }
  finish(program_->clock->now());
}

void RunnerProfiler::finish(TimePoint now) {
  const TimePoint end = std::min(now, until_);
  for (Profile& profile : profiles_) {
    if (profile.stream && profile.stream->active() && end >= from_) {
      cut(profile, end);
      write(profile, profile.stream->stop(end));
    } else if (profile.count) {
      edge::ProfileReport report;
      auto all = profile.count->stop();
      if (!all) continue;
      report.samples = *std::move(all);
      write(profile, std::move(report));
    }
  }
}

void RunnerProfiler::write(Profile& profile, edge::ProfileReport report) {
  report.handle = "qaic-runner";
  report.programs = {program_};
  const std::string part =
      profile.stream ? fmt::format("-stream-{}", profile.reports++) : std::string();
  if (!status_.ok()) return;
  const auto path =
      std::filesystem::path(options_.folder) /
      edge::profile_file_name(profile.kind, edge::kProfilePrefix, program_->number, part);
  const std::string text = edge::profile_report(profile.kind, report);
  status_ = write_file_atomic(path, as_byte_span(text));
  if (status_.ok()) written_.push_back(path.string());
}

}  // namespace corelane::cli
