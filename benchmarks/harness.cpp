#include "harness.h"

#include <fmt/format.h>

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
