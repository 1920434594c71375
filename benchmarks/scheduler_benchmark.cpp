// A pipeline through its public interface, on the wall clock. `--part` picks one:
// load:     W1 (Sleep, a call takes 4 + n ms, 8 items at most) at the times of `--arrivals FILE`,
//           in nanoseconds, by `--clients N` threads that call run(); `--limit MS`: the timeout of
//           each request.
// identity: requests a second of 10 clients, and the time of a call of one client.
// idle:     how often the kernel switched to a thread of an open pipeline in `--seconds N`.
// count:    `--requests N` of one client, for a tool that counts instructions.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "corelane/scheduler/scheduler.h"
#include "open_loop.h"

namespace corelane::bench {
namespace {

using scheduler::Config;
using scheduler::Dict;
using scheduler::kData;
using scheduler::kResult;
using scheduler::Pipeline;
using scheduler::RequestOptions;

/// What counts as an answer in time, in the report of a load.
constexpr double kInTimeMs = 30;

Pipeline open(const Config& config) { return take(Pipeline::create(config)); }

int answer_of(const Dict& request) { return std::any_cast<int>(request.at(kResult)); }

/// The value of the request must come back.
void run_one(const Pipeline& pipeline, Dict& request, int value) {
  request[kData] = value;
  check(pipeline.run(request));
  if (answer_of(request) != value) fail("answers differ");
}

Json load(int argc, char** argv) {
  std::ifstream in(argument(argc, argv, "--arrivals", ""));
  std::vector<std::int64_t> arrivals;
  for (std::int64_t at = 0; in >> at;) arrivals.push_back(at);
  if (arrivals.empty()) fail("--arrivals names no file with arrivals");
  RequestOptions options;
  const double limit = std::stod(argument(argc, argv, "--limit", "0"));
  options.timeout = Duration(static_cast<Duration::rep>(limit * 1e6));
  const std::size_t clients = std::stoul(argument(argc, argv, "--clients", "256"));
  precise_timers();
  const Pipeline pipeline = open({{"backend", "Sleep"}, {"a", "4"}, {"b", "1"}, {"max", "8"}});
  const OpenLoop result = open_loop(arrivals, clients, [&](std::size_t, std::size_t i) {
    Dict request{{kData, static_cast<int>(i)}};
    if (!pipeline.run(request, options).ok()) return false;
    if (answer_of(request) != static_cast<int>(i)) fail("answers differ");
    return true;
  });
  Json report = result.report();
  const scheduler::Statistics all = pipeline.statistics();
  report["mean_batch"] = static_cast<double>(all.batch_items) / static_cast<double>(all.batches);
  report["late"] = all.late;
  report["in_time"] = std::ranges::count_if(result.latencies_ms,
                                            [](double latency) { return latency <= kInTimeMs; });
  return report;
}

/// Requests a second of so many threads that each call run() one after another.
double throughput(const Pipeline& pipeline, std::size_t clients, Duration block) {
  std::atomic<std::uint64_t> calls{0};
  const TimePoint begin = real_clock()->now();
  {
    std::vector<std::jthread> threads;
    for (std::size_t client = 0; client < clients; ++client)
      threads.emplace_back([&, client] {
        Dict request;
        const int value = static_cast<int>(client);
        calls += static_cast<std::uint64_t>(
            run_for(block, 16, [&] { run_one(pipeline, request, value); }));
      });
  }
  const std::chrono::duration<double> spent = real_clock()->now() - begin;
  return static_cast<double>(calls) / spent.count();
}

Json verdict_of(const std::string& name, double value, double target, bool at_most) {
  const char* word = (at_most ? value <= target : value >= target) ? "met" : "missed";
  fmt::print(stderr, "{:<44} {:.1f}  {} {:.0f}: {}\n", name, value, at_most ? "<=" : ">=", target,
             word);
  return {{"name", name}, {"value", value}, {"target", target}, {"verdict", word}};
}

Json identity(int argc, char** argv) {
  const int rounds = std::stoi(argument(argc, argv, "--rounds", "15"));
  const Pipeline pipeline = open({{"backend", "Identity"}});
  std::vector<double> rates, calls_us;
  Dict request;
  for (int i = 0; i < 1000; ++i) run_one(pipeline, request, i);
  for (int round = 0; round < rounds; ++round) {
    rates.push_back(throughput(pipeline, 10, std::chrono::milliseconds(100)));
    for (int i = 0; i < 2000; ++i) {
      const TimePoint begin = real_clock()->now();
      run_one(pipeline, request, i);
      calls_us.push_back(
          std::chrono::duration<double, std::micro>(real_clock()->now() - begin).count());
    }
  }
  Json latency = percentiles(calls_us);
  Json report{verdict_of("Identity, 10 clients: requests a second", median_of(rates), 200e3, false),
              verdict_of("Identity, one client: p50, us", latency["p50"], 20, true)};
  report[1]["percentiles_us"] = std::move(latency);
  return report;
}

/// Voluntary and involuntary switches of all threads but the first one, which measures.
std::uint64_t switches() {
  std::uint64_t sum = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(::getpid())) continue;
    std::ifstream in(task.path() / "status");
    for (std::string line; std::getline(in, line);)
      if (line.find("ctxt_switches:") != line.npos)
        sum += std::stoull(line.substr(line.find(':') + 1));
  }
  return sum;
}

Json idle(int argc, char** argv) {
  const int seconds = std::stoi(argument(argc, argv, "--seconds", "10"));
  const Pipeline pipeline = open({{"backend", "Identity"}, {"instance_num", "4"}, {"max", "8"}});
  Dict request;
  for (int i = 0; i < 100; ++i) run_one(pipeline, request, i);
  check(pipeline.drain());
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // Until all threads wait again.
  const std::uint64_t before = switches();
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  return verdict_of(fmt::format("wake-ups of an idle pipeline in {} s", seconds),
                    static_cast<double>(switches() - before), 0, true);
}

Json count(int argc, char** argv) {
  const int requests = std::stoi(argument(argc, argv, "--requests", "1000"));
  const Pipeline pipeline = open({{"backend", "Identity"}});
  Dict request;
  for (int i = 0; i < requests; ++i) run_one(pipeline, request, i);
  return {{"requests", requests}};
}

Json run(int argc, char** argv) {
  const std::pair<const char*, Json (*)(int, char**)> parts[] = {
      {"load", load}, {"identity", identity}, {"idle", idle}, {"count", count}};
  const std::string name = argument(argc, argv, "--part", "");
  for (const auto& [known, part] : parts)
    if (name == known) return part(argc, argv);
  fail("--part is load, identity, idle or count");
}

}  // namespace
}  // namespace corelane::bench

int main(int argc, char** argv) {
  return corelane::bench::run_program("scheduler_benchmark", argc, argv, corelane::bench::run);
}
