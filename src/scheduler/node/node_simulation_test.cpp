#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "scheduler/testing/simulator.h"
#include "scheduler/testing/virtual_bench.h"
#include "scheduler/testing/workload.h"

namespace corelane::scheduler {
namespace {

using oracle::Nanoseconds;

/// Times of their own for each group, so that no two calls end at one instant.
oracle::Node distinct(const std::string& kind) {
  if (kind == "W1") return oracle::w1();
  if (kind == "W2") return oracle::w2();
  oracle::Node node{{}, false, 2 * oracle::kMillisecond};
  for (const std::uint32_t n : {1U, 4U, 8U})
    node.groups.push_back(
        {n, n, 1, oracle::linear(4 * oracle::kMillisecond + 1'234 * n, oracle::kMillisecond, n)});
  return node;
}

std::string joined(const oracle::Node& node, auto&& text) {
  std::string all;
  for (const oracle::Group& group : node.groups) all += (all.empty() ? "" : "&") + text(group);
  return all;
}

TEST(NodeSimulation, TheThreadsDoWhatTheSimulatorSays) {
  for (const std::string kind : {"W1", "W2", "W3"})
    for (const bool full : {false, true})
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        oracle::Node node = distinct(kind);
        node.full = full;
        const auto arrivals = oracle::poisson(seed, kind == "W1" ? 500 : 900, 150);
        const Simulated expected = Simulator(node, {}).run(arrivals);

        VirtualBench bench;
        bench.script->time = [&](const std::string& model, std::uint32_t items) {
          return Duration(node.groups[std::stoul(model)].times[items - 1]);
        };
        std::size_t next = 0;
        const Config config = {
            {"min", joined(node, [](const auto& group) { return std::to_string(group.min); })},
            {"max", joined(node, [](const auto& group) { return std::to_string(group.max); })},
            {"model", joined(node, [&](const auto&) { return std::to_string(next++); })},
            {"batching", full ? "full" : "idle"},
            {"records", "1000"}};
        ASSERT_TRUE(bench.open(config).ok());
        for (std::size_t i = 0; i < arrivals.size(); ++i)
          bench.submit_at(TimePoint{} + Duration(arrivals[i]), static_cast<int>(i));
        bench.run_all();

        std::vector<BatchRecord> records = bench.pipeline.records();
        std::ranges::sort(records, {}, &BatchRecord::id);
        const std::string what = kind + (full ? " full " : " idle ") + std::to_string(seed);
        ASSERT_EQ(records.size(), expected.starts.size()) << what;
        for (std::size_t i = 0; i < records.size(); ++i) {
          const oracle::Start start{(records[i].started - TimePoint{}).count(), records[i].group,
                                    records[i].instance, records[i].requests.front() - 1,
                                    records[i].items};
          ASSERT_EQ(start, expected.starts[i]) << what << ", call " << i;
        }
        bench.adds_up();
      }
}

}  // namespace
}  // namespace corelane::scheduler
