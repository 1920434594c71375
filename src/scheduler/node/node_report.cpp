/// Figures, records and explanations of a node.
#include <fmt/format.h>

#include <algorithm>

#include "corelane/runtime/trace.h"
#include "scheduler/node/node_core.h"

namespace corelane::scheduler {

std::uint32_t NodeCore::largest_request() const noexcept {
  const MutexLock lock(mutex_);
  return table_.settings().oversize == Oversize::kSplit ? UINT32_MAX : table_.largest_call();
}

Topology NodeCore::topology() const {
  Topology topology;
  topology.groups = stage_->groups();
  topology.range = {UINT32_MAX, 1};
  for (const Topology::Group& group : topology.groups) {
    topology.virtual_instances = std::max(topology.virtual_instances, group.instances);
    topology.range.min = std::min(topology.range.min, group.range.min);
    topology.range.max = std::max(topology.range.max, group.range.max);
  }
  return topology;
}

Statistics NodeCore::statistics() const {
  const MutexLock lock(mutex_);
  Statistics figures = table_.tally().figures();
  figures.running_batches = table_.running_batches();
  return figures;
}

std::vector<BatchRecord> NodeCore::records() const {
  const MutexLock lock(mutex_);
  const auto& records = table_.tally().records();
  return {records.begin(), records.end()};
}

/// How it ended, and the calls that it was in.
std::string NodeCore::told(const Ending& ending) const {
  std::string text = fmt::format("request {} {} {:.3f} ms after its submission", ending.id,
                                 state_name(ending.how), ms(ending.ended - ending.submitted));
  if (!ending.why.empty()) text += ": " + ending.why;
  for (const BatchRecord& batch : table_.tally().records()) {
    // Calls that are no longer recorded are left out of the story.
    if (std::ranges::find(batch.requests, ending.id) == batch.requests.end()) continue;
    text += fmt::format(
        "; waited {:.3f} ms, left in batch {} ({} items, {} of padding; {}) for group {}, instance "
        "{}, which took {:.3f} ms (expected {:.3f}){}",
        ms(batch.started - ending.submitted), batch.id, batch.items, batch.padding,
        reason_name(batch.reason), batch.group, batch.instance, ms(batch.ended - batch.started),
        ms(batch.predicted), batch.failed ? " and failed" : "");
  }
  return text;
}

Result<std::string> NodeCore::why(std::uint64_t id) const {
  constexpr std::size_t kShownParts = 16;
  const MutexLock lock(mutex_);
  const auto ending = std::ranges::find(endings_, id, &Ending::id);
  if (ending == endings_.end())
    return error(Code::kNotFound,
                 "request {} has not ended, or is no longer among the last {} that are remembered; "
                 "see the setting 'records'",
                 id, table_.settings().records);
  std::string text = told(*ending);
  const auto& parts = ending->parts;
  if (!parts.empty()) text += fmt::format("; it was split into {} parts", parts.size());
  for (std::size_t i = 0; i < std::min(parts.size(), kShownParts); ++i) {
    const auto part = std::ranges::find(endings_, parts[i], &Ending::id);
    text += part != endings_.end() ? "; " + told(*part)
                                   : fmt::format("; request {} is no longer remembered", parts[i]);
  }
  if (parts.size() > kShownParts) text += fmt::format("; and {} more", parts.size() - kShownParts);
  return text;
}

/// Each instance is a core of the trace, each call a job.
std::string NodeCore::chrome_trace(std::string_view name) const {
  device::DeviceInfo info;
  info.kind = "scheduler";
  info.instance = name;
  const std::vector<BatchRecord> batches = records();
  std::vector<std::uint32_t> first;  // Core of the first instance of each group.
  for (const Topology::Group& group : stage_->groups()) {
    const std::size_t g = first.size();
    // Those that have gone since, too.
    std::uint32_t instances = group.instances;
    for (const BatchRecord& batch : batches)
      if (batch.group == g) instances = std::max(instances, batch.instance + 1);
    first.push_back(static_cast<std::uint32_t>(info.cores.size()));
    for (std::uint32_t i = 0; i < instances; ++i)
      info.cores.push_back({fmt::format("{} {}/{}", group.backend, g, i), {}});
  }
  std::vector<TraceSpan> spans;
  for (const BatchRecord& batch : batches) {
    const std::uint32_t core = first[batch.group] + batch.instance;
    if (core >= 64) continue;  // A core set has no more.
    TraceSpan span;
    span.record.id = span.record.tag = batch.id;
    span.record.core_bits = std::uint64_t{1} << core;
    span.record.batch = batch.items;
    span.record.code = batch.failed ? Code::kEngineFailed : Code::kOk;
    span.record.queued = batch.oldest;
    span.record.started = batch.started;
    span.record.ended = batch.ended;
    span.label = fmt::format("{} items, {}", batch.items, reason_name(batch.reason));
    spans.push_back(std::move(span));
  }
  return corelane::chrome_trace(info, spans);
}

}  // namespace corelane::scheduler
