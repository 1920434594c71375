#include "adapters/rknn/model/rknn_perf.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>

#include "corelane/base/printable.h"

namespace corelane::rknn {
namespace {

/// Stands for a value that there is none of; an empty cell would shift the columns.
constexpr std::string_view kEmpty = "\\";

/// Times in the tables are whole microseconds.
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

/// FLOAT32, FLOAT16, INT8, ...: the names of types without their prefix.
std::string upper_name(DType dtype) {
  if (dtype == DType::kUndefined) return std::string(kEmpty);
  const std::string_view name = dtype_name(dtype);
  std::string prefix;
  if (name.starts_with("f")) prefix = "FLOAT";
  if (name.starts_with("i")) prefix = "INT";
  if (name.starts_with("u")) prefix = "UINT";
  if (!prefix.empty()) return prefix.append(name.substr(1));
  if (dtype == DType::kBF16) return "BFLOAT16";
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return upper;
}

/// A name in one word.
std::string word(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c <= ' '; }, '_');
  return text.empty() ? std::string(kEmpty) : printable(std::move(text));
}

struct Row {
  std::string type, dtype, target, in, out, time, rw, name;
};

/// A column: readers split rows at blanks, so a text that is too long pushes the rest on.
struct Column {
  std::string_view title;
  std::size_t width;
};

template <std::size_t N>
std::string table_row(const std::array<Column, N>& columns,
                      const std::array<std::string, N>& cells) {
  std::string row;
  for (std::size_t i = 0; i + 1 < N; ++i)
    row += fmt::format("{:<{}}{}", cells[i], columns[i].width,
                       cells[i].size() < columns[i].width ? "" : " ");
  return row + cells[N - 1] + "\n";
}

template <std::size_t N>
std::string title_row(const std::array<Column, N>& columns) {
  std::array<std::string, N> titles;
  for (std::size_t i = 0; i < N; ++i) titles[i] = columns[i].title;
  return table_row(columns, titles);
}

/// Titles and widths of the vendor's tables, which scripts split at blanks.
constexpr std::array<Column, 12> kLayerColumns = {{{"ID", 5},
                                                   {"OpType", 22},
                                                   {"DataType", 11},
                                                   {"Target", 8},
                                                   {"InputShape", 22},
                                                   {"OutputShape", 22},
                                                   {"Cycles(DDR/NPU/Total)", 24},
                                                   {"Time(us)", 11},
                                                   {"MacUsage(%)", 14},
                                                   {"WorkLoad(0/1/2)", 22},
                                                   {"RW(KB)", 10},
                                                   {"FullName", 0}}};
constexpr std::array<Column, 7> kRankingColumns = {{{"OpType", 28},
                                                    {"CallNumber", 14},
                                                    {"CPUTime(us)", 14},
                                                    {"GPUTime(us)", 14},
                                                    {"NPUTime(us)", 14},
                                                    {"TotalTime(us)", 15},
                                                    {"TimeRatio(%)", 0}}};

/// The load of cores 0 to 2 in percent: the cores of a run share its work evenly.
std::string workload(std::uint64_t core_bits) {
  const int cores = std::max(1, __builtin_popcountll(core_bits));
  std::string text;
  for (int core = 0; core < 3; ++core) {
    const bool on = ((core_bits >> core) & 1U) != 0;
    text += fmt::format("{}{:.1f}%", core == 0 ? "" : "/", on ? 100.0 / cores : 0.0);
  }
  return text;
}

/// What goes between the host and the device, with two places.
std::string kilobytes(DType dtype, const Shape& shape) {
  const std::size_t bytes = dtype_bytes(dtype, shape.elements().value_or(0));
  return fmt::format("{:.2f}", static_cast<double>(bytes) / 1024.0);
}

/// In the order in which they run. Inputs and outputs take no time of the device.
std::vector<Row> rows_of(const std::vector<device::LayerTime>& layers, const PerfFacts& facts) {
  std::vector<Row> rows;
  const ProgramDescription& description = *facts.description;
  const std::string none(kEmpty);
  const auto add = [&](const std::string& type, const IoEntry& entry, const Shape& shape) {
    rows.push_back({type, upper_name(entry.reported_dtype), "CPU", none, none, "0",
                    kilobytes(entry.desc.dtype, shape), type + ":" + word(entry.desc.name)});
    (type == "InputOperator" ? rows.back().out : rows.back().in) = shape_text(shape);
  };
  for (std::size_t i = 0; i < description.inputs.size(); ++i)
    add("InputOperator", description.inputs[i], facts.inputs[i]);
  for (const device::LayerTime& layer : layers) {
    if (!layer.executed) continue;
    rows.push_back({word(layer.type), upper_name(layer.dtype), "NPU", none, none,
                    std::to_string(micros(layer.duration)), none,
                    word(layer.type) + ":" + word(layer.name)});
  }
  for (std::size_t i = 0; i < description.outputs.size(); ++i)
    add("OutputOperator", description.outputs[i], facts.outputs[i]);
  return rows;
}

struct Share {
  std::size_t calls = 0;
  std::int64_t time = 0;
};

std::string ranking_row(const std::string& type, const Share& share, const std::string& ratio) {
  const std::string time = std::to_string(share.time);
  return table_row(kRankingColumns,
                   {type, std::to_string(share.calls), "0", "0", time, time, ratio});
}

/// The operator types, the slowest first; those of equal time in the order of their names.
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
  std::string text = rule(112) +
                     "                                 Operator Time Consuming Ranking Table\n" +
                     rule(112);
  text += title_row(kRankingColumns);
  text += rule(112);
  Share all;
  all.time = total;
  for (const auto& [type, share] : sorted) {
    all.calls += share.calls;
    const double ratio =
        total == 0 ? 0.0 : 100.0 * static_cast<double>(share.time) / static_cast<double>(total);
    text += ranking_row(type, share, fmt::format("{:.2f}%", ratio));
  }
  return text + rule(112) + ranking_row("Total", all, "") + rule(112);
}

}  // namespace

/// Both tables are there without layers too, so that readers find their heads.
std::string perf_detail_text(const std::vector<device::LayerTime>& layers, const PerfFacts& facts) {
  constexpr std::size_t kWidth = 200;
  std::string text =
      rule(kWidth) + std::string(80, ' ') + "Network Layer Information Table\n" + rule(kWidth);
  text += title_row(kLayerColumns) + rule(kWidth);
  std::int64_t total = 0;
  if (!layers.empty()) {
    const std::string load = workload(facts.core_bits);
    std::size_t id = 1;
    for (const Row& row : rows_of(layers, facts))
      text += table_row(kLayerColumns,
                        {std::to_string(id++), row.type, row.dtype, row.target, row.in, row.out,
                         "0/0/0", row.time, std::string(kEmpty),
                         row.target == "NPU" ? load : std::string(kEmpty), row.rw, row.name});
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
