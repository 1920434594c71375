/// What the tests of profiling share: reports that were delivered, two readers of the latency
/// report, one by the columns' names, one by the place from the end, and one of traces.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "adapters/qaic/testing/qaic_bench.h"

namespace corelane::qaic::test {

/// Gets reports.
class Reports {
 public:
  static void on_report(const char* report, std::size_t size, void* self) {
    auto& reports = *static_cast<Reports*>(self);
    const std::lock_guard guard(reports.mutex_);
    reports.texts_.emplace_back(report, size);
  }
  std::vector<std::string> all() const {
    const std::lock_guard guard(mutex_);
    return texts_;
  }
  std::size_t count() const { return all().size(); }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

inline std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
  return cells;
}

/// The table after four header lines: rows by the names of the columns.
inline std::vector<std::map<std::string, double>> rows_by_name(const std::string& report) {
  std::istringstream in(report);
  std::string line;
  for (int i = 0; i < 4; ++i) std::getline(in, line);
  std::getline(in, line);
  const std::vector<std::string> names = cells_of(line);
  std::vector<std::map<std::string, double>> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = cells_of(line);
    EXPECT_EQ(cells.size(), names.size()) << line;
    std::map<std::string, double>& row = rows.emplace_back();
    for (std::size_t i = 0; i < std::min(cells.size(), names.size()); ++i)
      row[names[i]] = std::stod(cells[i]);
  }
  return rows;
}

/// The third word from the end of each line that begins with a number and has commas.
inline std::vector<double> third_from_the_end(const std::string& report) {
  std::vector<double> found;
  std::istringstream in(report);
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() < 3 || cells[0].find_first_not_of("0123456789") != std::string::npos) continue;
    found.push_back(std::stod(cells[cells.size() - 3]));
  }
  return found;
}

/// Spans of a trace, by begin and end in microseconds.
using Spans = std::set<std::pair<double, double>>;

/// Whether of any two spans one lies inside of the other, or they do not meet.
inline bool nest(const Spans& spans) {
  constexpr double kSlack = 1e-6;  // A begin and a duration are added.
  const auto inside = [&](const auto& a, const auto& b) {
    return a.first >= b.first - kSlack && a.second <= b.second + kSlack;
  };
  return std::ranges::all_of(spans, [&](const auto& a) {
    return std::ranges::all_of(spans, [&](const auto& b) {
      const bool apart = a.second <= b.first + kSlack || b.second <= a.first + kSlack;
      return apart || inside(a, b) || inside(b, a);
    });
  });
}

/// How many bars a Chrome trace has. Each track's bars nest and do not go back, what is
/// begun is ended, and the spans of one job nest, too.
inline std::size_t bars_of_trace(const std::string& report) {
  const auto trace = nlohmann::json::parse(report);
  std::map<int, Spans> tracks;
  std::map<int, double> last;
  std::map<std::uint64_t, Spans> jobs;
  std::map<std::pair<std::string, std::uint64_t>, std::vector<std::pair<std::string, double>>> open;
  std::size_t bars = 0;
  for (const auto& event : trace["traceEvents"]) {
    const std::string phase = event["ph"];
    if (phase == "M") continue;
    const double at = event["ts"];
    EXPECT_GE(at, 0) << event;
    if (phase == "X") {
      ++bars;
      const int track = event["tid"];
      EXPECT_GE(at, last[track]) << event;
      last[track] = at;
      tracks[track].emplace(at, at + event["dur"].get<double>());
      jobs[event["args"]["job"]].emplace(at, at + event["dur"].get<double>());
      continue;
    }
    auto& opened = open[{event["cat"], event["id"]}];
    if (phase == "b") {
      opened.emplace_back(event["name"], at);
      continue;
    }
    EXPECT_EQ(phase, "e") << event;
    const bool matches = !opened.empty() && opened.back().first == event["name"].get<std::string>();
    EXPECT_TRUE(matches) << event;
    if (!matches) continue;
    EXPECT_GE(at, opened.back().second) << event;
    jobs[event["id"]].emplace(opened.back().second, at);
    opened.pop_back();
  }
  for (const auto& [key, left] : open) EXPECT_TRUE(left.empty()) << key.first << " " << key.second;
  for (const auto& [track, spans] : tracks) EXPECT_TRUE(nest(spans)) << "track " << track;
  for (const auto& [job, spans] : jobs) EXPECT_TRUE(nest(spans)) << "job " << job;
  return bars;
}

/// A program with an execution object, whose inferences take a millisecond each.
struct ProfileBench : Bench {
  explicit ProfileBench(const std::string& on = "null:generic:4?a=1ms")
      : Bench(on), net(program()), object(exec(net)), line(queue()) {
    EXPECT_EQ(tensors.give(object), QS_SUCCESS) << text();
  }
  ~ProfileBench() {
    static_cast<void>(qaicReleaseExecObj(object));
    static_cast<void>(qaicReleaseProgram(net));
    static_cast<void>(qaicReleaseQueue(line));
    clock->run_all();
  }
  /// So many inferences, one after another.
  void infer(int count = 1) const {
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(qaicEnqueueExecObj(line, object, nullptr), QS_SUCCESS) << text();
      advance(std::chrono::milliseconds(1));
      ASSERT_EQ(qaicExecObjWaitForCompletion(object, 0), QS_SUCCESS) << text();
    }
  }
  QAicProfilingHandle* counting(std::uint32_t samples,
                                QAicProfilingType type = QAIC_PROFILING_TYPE_LATENCY,
                                const char* folder = nullptr) {
    QAicProfilingConfig config;
    config.numPrograms = 1;
    config.programs = &net;
    config.numSamples = samples;
    config.profilingType = type;
    config.outputDir = folder;
    QAicProfilingHandle* made = nullptr;
    EXPECT_EQ(qaicCreateProfilingHandle(&made, &config, &Reports::on_report, &reports), QS_SUCCESS)
        << text();
    return made;
  }
  QAicStreamProfilingHandle* stream(QAicStreamProfilingConfig config = {}) {
    QAicStreamProfilingHandle* made = nullptr;
    EXPECT_EQ(qaicCreateStreamProfilingHandle(&made, &config, &Reports::on_report, &reports),
              QS_SUCCESS)
        << text();
    return made;
  }
  /// Rows of each report so far.
  std::vector<std::size_t> rows() const {
    std::vector<std::size_t> counts;
    for (const std::string& one : reports.all()) counts.push_back(rows_by_name(one).size());
    return counts;
  }

  QAicProgram* net;
  QAicExecObj* object;
  QAicQueue* line;
  Tensors tensors;
  Reports reports;
};

}  // namespace corelane::qaic::test
