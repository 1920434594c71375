/// What the run was: the table for a person, the JSON for programs, the trace for a viewer. All of
/// it from the device's records and the results.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "corelane/device/device.h"
#include "corelane/runtime/trace.h"
#include "model_set.h"
#include "page_pipeline.h"

namespace page_reader {

/// One model's part in the run.
struct ModelShare {
  std::string name;
  std::string placement;            ///< "replicated" (a copy for each core) or "shared".
  corelane::DurationSummary times;  ///< On the cores, waiting excluded.
  double core_share = 0;            ///< Of the time that all cores offered, 0..1.
};

struct RunSummary {
  std::vector<ModelShare> models;
  std::vector<double> busy;      ///< Of each core, 0..1.
  corelane::Duration span{};     ///< From the first job's start to the last one's end.
  corelane::Duration reading{};  ///< All pages, from the first pixel to the last character.
  std::size_t pages = 0;
  std::size_t lines = 0;  ///< Of all pages.
  double lines_per_second = 0;
};

/// Names and placements; figures are still empty.
std::vector<ModelShare> model_shares(const ModelSet& models);

/// `models` in the order of their roles; each record belongs to the role in its tag.
RunSummary summarize_run(std::vector<ModelShare> models,
                         std::span<const corelane::device::JobRecord> records, std::size_t cores,
                         std::span<const PageResult> results, corelane::Duration reading);

/// Columns: model, count, p50, p99, core share, placement; below it each core and the totals.
std::string summary_table(const RunSummary& summary, const corelane::device::DeviceInfo& device);

/// Bars named "recognition line 3" for corelane::chrome_trace.
std::vector<corelane::TraceSpan> trace_spans(std::span<const corelane::device::JobRecord> records);

/// The results of the first reading and the summary.
std::string results_json(const std::string& page, const PageResult& result,
                         std::span<const std::string> labels, const RunSummary& summary,
                         const corelane::device::DeviceInfo& device);

}  // namespace page_reader
