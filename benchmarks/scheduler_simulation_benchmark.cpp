// The scheduler's decisions without threads: the table of decisions under virtual time, which gives
// the same figures on every machine. W1 (a call takes 4 + n ms, 8 items at most) and W3 (1&4&8, two
// instances each) in open loop at shares of their capacity, batching "idle" beside "full"; and W1
// beyond its capacity with deadlines beside first-in-first-out. Each simulation is compared with
// the oracle. `--arrivals FILE` instead: the latencies of W1 for these arrivals, in nanoseconds.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>

#include "harness.h"
#include "percentiles.h"
#include "scheduler/testing/oracle.h"
#include "scheduler/testing/simulator.h"
#include "scheduler/testing/workload.h"

namespace corelane::bench {
namespace {

using scheduler::NodeSettings;
using scheduler::Simulated;
using scheduler::Simulator;
namespace oracle = scheduler::oracle;
using Arrivals = std::vector<oracle::Nanoseconds>;

/// Without a limit the oracle must start the same calls.
Simulated simulated(const oracle::Node& node, const Arrivals& arrivals, Duration limit = {}) {
  Simulated ours = Simulator(node, NodeSettings()).run(arrivals, limit);
  if (limit == Duration{} && ours.starts != oracle::simulate(node, arrivals))
    fail("the simulator and the oracle differ");
  return ours;
}

double mean_batch(const Simulated& of) {
  const double batches = static_cast<double>(of.figures.batches);
  return batches == 0 ? 0 : static_cast<double>(of.figures.batch_items) / batches;
}

Json at_rate(const std::string& name, oracle::Node node, double capacity, double load,
             std::size_t count) {
  const Arrivals arrivals = oracle::poisson(1, capacity * load, count);
  Json entry{{"workload", name}, {"load", load}, {"per_second", capacity * load}};
  std::string line = fmt::format("{} at {:>3.0f} % of {:.0f}/s:", name, load * 100, capacity);
  for (const bool full : {false, true}) {
    node.full = full;
    const Simulated result = simulated(node, arrivals);
    Json figures = percentiles(result.latencies_ms);
    figures["mean_batch"] = mean_batch(result);
    line +=
        fmt::format("  {} p50 {:.2f} p95 {:.2f} p99 {:.2f} ms, {:.2f} a call",
                    full ? "full" : "idle", figures["p50"].get<double>(),
                    figures["p95"].get<double>(), figures["p99"].get<double>(), mean_batch(result));
    entry[full ? "full" : "idle"] = std::move(figures);
  }
  fmt::print(stderr, "{}\n", line);
  return entry;
}

/// 800/s against a capacity of 667/s, each with a limit of 30 ms.
Json overload(std::size_t count) {
  constexpr double kCapacity = 8e3 / 12;
  const Arrivals arrivals = oracle::poisson(7, 800, count);
  const auto limit = std::chrono::milliseconds(30);
  const auto goodput = [&](const Simulated& of) {
    const auto in_time = std::ranges::count_if(of.latencies_ms, [](double ms) { return ms <= 30; });
    return static_cast<double>(in_time) /
           std::chrono::duration<double>(of.end - TimePoint{}).count();
  };
  const Simulated ours = simulated(oracle::w1(), arrivals, limit);
  const Simulated fifo = simulated(oracle::w1(), arrivals);
  const double share = goodput(ours) / kCapacity;
  const auto late = ours.figures.late + static_cast<std::uint64_t>(std::ranges::count_if(
                                            ours.latencies_ms, [](double ms) { return ms > 30; }));
  const char* word = share >= 0.95 && late == 0 ? "met" : "missed";
  fmt::print(stderr,
             "W1 at 800/s, limit 30 ms: goodput {:.1f}/s ({:.3f} of the capacity), {} late; "
             "first-in-first-out {:.1f}/s  >= 0.95, none late: {}\n",
             goodput(ours), share, late, goodput(fifo), word);
  return {{"name", "W1 at 800/s, limit 30 ms: goodput of the capacity"},
          {"goodput_per_second", goodput(ours)},
          {"of_capacity", share},
          {"late", late},
          {"fifo_goodput_per_second", goodput(fifo)},
          {"target", 0.95},
          {"verdict", word}};
}

Json ideal_of(const std::string& path) {
  std::ifstream in(path);
  Arrivals arrivals;
  for (oracle::Nanoseconds at = 0; in >> at;) arrivals.push_back(at);
  if (arrivals.empty()) fail("no arrivals in " + path);
  return percentiles(simulated(oracle::w1(), arrivals).latencies_ms);
}

Json run(int argc, char** argv) {
  const std::string path = argument(argc, argv, "--arrivals", "");
  if (!path.empty()) return ideal_of(path);
  const std::size_t count = std::stoul(argument(argc, argv, "--requests", "40000"));
  Json report{{"benchmark", "scheduler_simulation"}, {"requests", count}};
  for (const double load : {0.10, 0.25, 0.50, 0.75, 0.90, 1.20}) {
    report["rates"].push_back(at_rate("W1", oracle::w1(), 8e3 / 12, load, count));
    report["rates"].push_back(at_rate("W3", oracle::w3(), 2733, load, count));
  }
  report["overload"] = overload(count);
  return report;
}

}  // namespace
}  // namespace corelane::bench

int main(int argc, char** argv) {
  return corelane::bench::run_program("scheduler_simulation_benchmark", argc, argv,
                                      corelane::bench::run);
}
