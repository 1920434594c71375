#include "harness.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "corelane/base/api.h"

namespace corelane::bench {

void fail(const std::string& what) { throw std::runtime_error(what); }

void check(const Status& status) {
  if (!status.ok()) fail(status.to_string());
}

Times measure(const std::vector<Contender>& contenders, const Settings& settings) {
  Times times(contenders.size());
  std::mt19937_64 random(settings.seed);
  std::vector<std::size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (const auto& c : contenders) c.run(settings.block);  // Warm.
  for (int round = 0; round < settings.rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const auto i : order) {
      if (contenders[i].before) contenders[i].before();
      const auto begin = real_clock()->now();
      const auto calls = contenders[i].run(settings.block);
      const std::chrono::duration<double> spent = real_clock()->now() - begin;
      times[i].push_back(spent.count() / calls);
    }
  }
  return times;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

Ratio ratio_of(const std::vector<double>& a, const std::vector<double>& b, std::uint64_t seed) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(a[i] / b[i]);
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::size_t> draw(0, ratios.size() - 1);
  std::vector<double> medians;
  for (int k = 0; k < 2000; ++k) {
    std::vector<double> sample;
    for (std::size_t i = 0; i < ratios.size(); ++i) sample.push_back(ratios[draw(random)]);
    medians.push_back(median_of(std::move(sample)));
  }
  std::sort(medians.begin(), medians.end());
  return {median_of(ratios), medians[50], medians[1949]};
}

std::string verdict(const Ratio& r, double target, bool at_most) {
  if (at_most ? r.low > target : r.high < target) return "missed";
  if (at_most ? r.high <= target : r.low >= target) return "met";
  return "open";
}

Json report_ratio(const std::string& name, const Ratio& r, const Ratio& control, double target,
                  bool at_most) {
  const auto v = verdict(r, target, at_most);
  std::fputs(
      fmt::format("{:<44} {:.3f} [{:.3f}, {:.3f}]  A/A {:.3f} [{:.3f}, {:.3f}]  {} {:.2f}: {}\n",
                  name, r.median, r.low, r.high, control.median, control.low, control.high,
                  at_most ? "<=" : ">=", target, v)
          .c_str(),
      stderr);
  return {{"name", name},
          {"ratio", r.median},
          {"low", r.low},
          {"high", r.high},
          {"control", control.median},
          {"control_low", control.low},
          {"control_high", control.high},
          {"target", target},
          {"at_most", at_most},
          {"verdict", v}};
}

namespace {

/// Median of a[i] - b[i], of seconds, in microseconds.
double more_us(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> each;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    each.push_back((a[i] - b[i]) * 1e6);
  return median_of(std::move(each));
}

}  // namespace

Json report_difference(const std::string& name, const Times& times, double target_us) {
  const double more = more_us(times[0], times[1]);
  const double control = more_us(times[2], times[1]);
  const char* word = more <= target_us ? "met" : "missed";
  fmt::print(stderr, "{:<60} {:.2f} us (A/A {:.2f})  <= {:.1f}: {}\n", name, more, control,
             target_us, word);
  return {{"name", name + ", us"},
          {"difference_us", more},
          {"control_us", control},
          {"first_us", median_of(times[0]) * 1e6},
          {"second_us", median_of(times[1]) * 1e6},
          {"target_us", target_us},
          {"verdict", word}};
}

double share_of_ideal(const Settings& settings, double ideal, const std::function<double()>& run) {
  std::vector<double> shares;
  for (int round = 0; round < settings.rounds / 4 + 3; ++round) {
    const TimePoint begin = real_clock()->now();
    const double calls = run();
    const std::chrono::duration<double> spent = real_clock()->now() - begin;
    shares.push_back(calls / spent.count() / ideal);
  }
  return median_of(std::move(shares));
}

Json report_share(std::size_t size, double share, std::optional<double> callbacks_alone) {
  const char* word = size < 2 ? "not asked" : share >= 0.95 ? "met" : "missed";
  const std::string beside =
      callbacks_alone ? fmt::format(" (callbacks alone {:.3f})", *callbacks_alone) : "";
  fmt::print(stderr, "four activations of 1 ms, set size {:>2}: {:.3f} of the ideal rate{}  {}\n",
             size, share, beside, word);
  Json entry{{"size", size}, {"of_ideal", share}, {"verdict", word}};
  if (callbacks_alone) entry["callbacks_of_ideal"] = *callbacks_alone;
  return entry;
}

Contender metered(std::vector<double>& seconds, Contender one) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  return {one.name,
          [&seconds, now, run = std::move(one.run)](Duration block) {
            const double begin = now();
            const double calls = run(block);
            seconds.push_back((now() - begin) / calls);
            return calls;
          },
          std::move(one.before)};
}

Json report_processor(const std::vector<double> (&seconds)[3]) {
  const double job = median_of(seconds[1]) * 1e6;
  const double more = more_us(seconds[0], seconds[1]), control = more_us(seconds[2], seconds[1]);
  fmt::print(stderr, "    processor time: {:.2f} us a job, {:+.2f} us watched (A/A {:+.2f})\n", job,
             more, control);
  return {{"job_us", job}, {"more_us", more}, {"control_us", control}};
}

Json environment() {
  std::ifstream in("/proc/cpuinfo");
  std::string cpu;
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) cpu = line.substr(line.find(':') + 2);
  return {{"cpu", cpu},
          {"processors", std::thread::hardware_concurrency()},
          {"corelane", version()},
          {"compiler", __VERSION__}};
}

std::string argument(int argc, char** argv, const std::string& name, const std::string& fallback) {
  for (int i = 1; i + 1 < argc; ++i)
    if (argv[i] == name) return argv[i + 1];
  return fallback;
}

int finish(int argc, char** argv, const Json& report) {
  const auto text = report.dump(2) + "\n";
  const auto path = argument(argc, argv, "--out", "");
  if (!path.empty())
    std::ofstream(path) << text;
  else
    std::fputs(text.c_str(), stdout);
  return 0;
}

int run_program(const char* name, int argc, char** argv, Json (*run)(int, char**)) {
  try {
    return finish(argc, argv, run(argc, argv));
  } catch (const std::exception& e) {
    std::fputs(fmt::format("{}: {}\n", name, e.what()).c_str(), stderr);
    return 1;
  }
}

}  // namespace corelane::bench
