#include "adapters/rknn/rknn_perf.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>

namespace corelane::rknn {
namespace {

constexpr std::string_view kEmpty = "\\";

std::int64_t micros(Duration d) {
  return std::chrono::duration_cast<std::chrono::microseconds>(d).count();
}

std::string rule(std::size_t width) { return std::string(width, '-') + "\n"; }

std::string shape_text(const Shape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.rank(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ",", shape[i]);
  return text + ")";
}

std::string upper_name(DType dtype) {
  std::string name(dtype == DType::kUndefined ? std::string_view(kEmpty) : dtype_name(dtype));
  if (name == "f32") return "FLOAT32";
  if (name == "f16") return "FLOAT16";
  if (name == "i8") return "INT8";
  if (name == "u8") return "UINT8";
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return name;
}

/// A name in one word.
std::string word(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c <= ' '; }, '_');
  return text.empty() ? std::string(kEmpty) : text;
}

struct Row {
  std::string type, dtype, target, in, out, time, rw, name;
};

std::string workload(std::uint64_t core_bits) {
  const int cores = std::max(1, __builtin_popcountll(core_bits));
  std::string text;
  for (int core = 0; core < 3; ++core) {
    const bool on = ((core_bits >> core) & 1U) != 0;
    text += fmt::format("{}{:.1f}%", core == 0 ? "" : "/", on ? 100.0 / cores : 0.0);
  }
  return text;
}

std::vector<Row> rows_of(const std::vector<device::LayerTime>& layers, const PerfFacts& facts) {
  std::vector<Row> rows;
  const ProgramDescription& description = *facts.description;
  for (std::size_t i = 0; i < description.inputs.size(); ++i) {
    const IoEntry& entry = description.inputs[i];
    rows.push_back({"InputOperator", upper_name(entry.reported_dtype), "CPU", std::string(kEmpty),
                    shape_text(facts.inputs[i]), "0", std::string(kEmpty),
                    "InputOperator:" + word(entry.desc.name)});
  }
  for (const device::LayerTime& layer : layers) {
    if (!layer.executed) continue;
    rows.push_back({word(layer.type), upper_name(layer.dtype), "NPU", std::string(kEmpty),
                    std::string(kEmpty), std::to_string(micros(layer.duration)),
                    std::string(kEmpty), word(layer.type) + ":" + word(layer.name)});
  }
  for (std::size_t i = 0; i < description.outputs.size(); ++i) {
    const IoEntry& entry = description.outputs[i];
    rows.push_back({"OutputOperator", upper_name(entry.reported_dtype), "CPU",
                    shape_text(facts.outputs[i]), std::string(kEmpty), "0", std::string(kEmpty),
                    "OutputOperator:" + word(entry.desc.name)});
  }
  return rows;
}

struct Share {
  std::size_t calls = 0;
  std::int64_t time = 0;
};

std::string ranking(const std::vector<device::LayerTime>& layers, const PerfFacts& facts) {
  std::map<std::string, Share> shares;
  std::int64_t total = 0;
  for (const device::LayerTime& layer : layers) {
    if (!layer.executed) continue;
    Share& share = shares[word(layer.type)];
    ++share.calls;
    share.time += micros(layer.duration);
    total += micros(layer.duration);
  }
  if (!layers.empty()) {
    shares["InputOperator"].calls = facts.inputs.size();
    shares["OutputOperator"].calls = facts.outputs.size();
  }
  std::vector<std::pair<std::string, Share>> sorted(shares.begin(), shares.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
  constexpr std::string_view kRow = "{:<28}{:<14}{:<14}{:<14}{:<14}{:<14}{:<14}\n";
  std::string text = rule(112) +
                     "                                 Operator Time Consuming Ranking Table\n" +
                     rule(112);
  text += fmt::format(kRow, "OpType", "CallNumber", "CPUTime(us)", "GPUTime(us)", "NPUTime(us)",
                      "TotalTime(us)", "TimeRatio(%)");
  text += rule(112);
  std::size_t calls = 0;
  for (const auto& [type, share] : sorted) {
    calls += share.calls;
    const double ratio =
        total == 0 ? 0.0 : 100.0 * static_cast<double>(share.time) / static_cast<double>(total);
    text += fmt::format(kRow, type, share.calls, 0, 0, share.time, share.time,
                        fmt::format("{:.2f}%", ratio));
  }
  text += rule(112) + fmt::format(kRow, "Total", calls, 0, 0, total, total, "") + rule(112);
  return text;
}

}  // namespace

std::string perf_detail_text(const std::vector<device::LayerTime>& layers, const PerfFacts& facts) {
  constexpr std::size_t kWidth = 200;
  constexpr std::string_view kRow =
      "{:<5}{:<22}{:<11}{:<8}{:<22}{:<22}{:<24}{:<11}{:<14}{:<22}{:<10}{}\n";
  std::string text =
      rule(kWidth) + std::string(80, ' ') + "Network Layer Information Table\n" + rule(kWidth);
  text += fmt::format(kRow, "ID", "OpType", "DataType", "Target", "InputShape", "OutputShape",
                      "Cycles(DDR/NPU/Total)", "Time(us)", "MacUsage(%)", "WorkLoad(0/1/2)",
                      "RW(KB)", "FullName");
  text += rule(kWidth);
  std::int64_t total = 0;
  if (!layers.empty()) {
    const std::string load = workload(facts.core_bits);
    std::size_t id = 1;
    for (const Row& row : rows_of(layers, facts))
      text += fmt::format(kRow, id++, row.type, row.dtype, row.target, row.in, row.out, "0/0/0",
                          row.time, kEmpty, row.target == "NPU" ? load : std::string(kEmpty),
                          row.rw, row.name);
    for (const device::LayerTime& layer : layers)
      if (layer.executed) total += micros(layer.duration);
  }
  text += rule(kWidth);
  text += fmt::format("Total Operator Elapsed Per Frame Time(us): {}\n", total);
  text += fmt::format("Total Memory Read/Write Per Frame Size(KB): {}\n",
                      (facts.bytes_read + facts.bytes_written) / 1024);
  text += rule(kWidth);
  return text + ranking(layers, facts);
}

}  // namespace corelane::rknn
