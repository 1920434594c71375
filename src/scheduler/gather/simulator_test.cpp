#include "scheduler/testing/simulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "scheduler/testing/workload.h"

namespace corelane::scheduler {
namespace {

void same_as_oracle(const oracle::Node& node, const oracle::Times& arrivals,
                    const std::string& what, const oracle::Sizes& sizes = {}) {
  const oracle::Starts theirs = oracle::simulate(node, arrivals, sizes);
  const Simulated ours = Simulator(node, {}).run(arrivals, {}, sizes);
  ASSERT_EQ(ours.starts.size(), theirs.size()) << what;
  for (std::size_t i = 0; i < theirs.size(); ++i)
    ASSERT_EQ(ours.starts[i], theirs[i]) << what << ", call " << i;
  ASSERT_EQ(ours.figures.done + ours.figures.waiting, arrivals.size()) << what;
}

TEST(Simulator, EqualsTheOracleOnTheWorkloads) {
  const std::pair<const char*, oracle::Node> nodes[] = {
      {"W1", oracle::w1()}, {"W2", oracle::w2()}, {"W3", oracle::w3()}};
  const double capacities[] = {667, 1404, 2733};
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    for (std::size_t i = 0; i < 3; ++i)
      for (const bool full : {false, true}) {
        oracle::Node node = nodes[i].second;
        node.full = full;
        const double rate = capacities[i] * (0.1 + 0.012 * static_cast<double>(seed));
        const oracle::Nanoseconds grid = seed % 3 == 0 ? oracle::kMillisecond : 1;
        same_as_oracle(node, oracle::poisson(seed, rate, 200, grid),
                       std::string(nodes[i].first) + (full ? " full" : " idle") + ", seed " +
                           std::to_string(seed));
        if (HasFatalFailure()) return;
      }
}

TEST(Simulator, EqualsTheOracleOnAnyNode) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const oracle::Node node = oracle::any_node(seed);
    const auto arrivals = oracle::poisson(seed, 200 + 10.0 * static_cast<double>(seed % 300), 60,
                                          oracle::kMillisecond / 2);
    same_as_oracle(node, arrivals, "seed " + std::to_string(seed));
    if (HasFatalFailure()) return;
  }
}

TEST(Simulator, EqualsTheOracleOnRequestsOfSeveralItems) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const oracle::Node node = oracle::any_node(seed);
    const auto arrivals = oracle::poisson(seed, 100 + 3.0 * static_cast<double>(seed % 300), 100,
                                          oracle::kMillisecond / 2);
    same_as_oracle(node, arrivals, "seed " + std::to_string(seed),
                   oracle::any_sizes(seed, node, arrivals.size()));
    if (HasFatalFailure()) return;
  }
}

double percentile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

TEST(Simulator, UnderOverloadDeadlinesKeepTheGoodputAtTheCapacity) {
  constexpr std::size_t kCount = 40'000;  // 50 s at 800 a second, against 667.
  const auto arrivals = oracle::poisson(7, 800, kCount);
  const auto limit = std::chrono::milliseconds(30);
  const Simulated ours = Simulator(oracle::w1(), {}).run(arrivals, limit);
  const double seconds = std::chrono::duration<double>(ours.end - TimePoint{}).count();
  EXPECT_GE(static_cast<double>(ours.figures.done) / seconds, 0.95 * 667);
  EXPECT_EQ(ours.figures.late, 0U);
  EXPECT_LE(percentile(ours.latencies_ms, 1), 30.0);

  const Simulated fifo = Simulator(oracle::w1(), {}).run(arrivals);
  const auto in_time = std::ranges::count_if(fifo.latencies_ms, [](double ms) { return ms <= 30; });
  EXPECT_LT(static_cast<double>(in_time) / seconds, 20.0) << "first-in-first-out answers all late";
}

}  // namespace
}  // namespace corelane::scheduler
