/// Ratios that can be trusted on a noisy machine.
///
/// Each contender runs a block of a few milliseconds; in each round all run once, in random order.
/// The figure is the median over the rounds of (contender's time per call / rival's), with a 95 %
/// bootstrap interval; a second, identical instance of the rival (the A/A control) shows what a
/// ratio of 1 looks like here. A target is missed when the whole interval is beyond it.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "corelane/base/clock.h"
#include "corelane/base/status.h"

namespace corelane::bench {

using Json = nlohmann::ordered_json;

/// A benchmark ends at its first failure: these throw std::runtime_error with the message.
[[noreturn]] void fail(const std::string& what);
void check(const Status& status);
template <class T>
T take(Result<T> result) {
  if (!result) fail(result.error().to_string());
  return std::move(*result);
}

/// Runs calls for about `block` and returns how many; throws std::runtime_error on failure.
struct Contender {
  std::string name;
  std::function<double(Duration block)> run;
  std::function<void()> before = {};  ///< Before each block, not measured; may be null.
};

struct Ratio {
  double median = 0;
  double low = 0;  ///< 95 % interval of the median.
  double high = 0;
};

struct Settings {
  int rounds = 31;
  Duration block = std::chrono::milliseconds(5);
  std::uint64_t seed = 1;
};

/// Seconds per call, [contender][round].
using Times = std::vector<std::vector<double>>;
Times measure(const std::vector<Contender>& contenders, const Settings& settings);

/// Median of a[i] / b[i] with its interval.
Ratio ratio_of(const std::vector<double>& a, const std::vector<double>& b, std::uint64_t seed = 1);
double median_of(std::vector<double> values);

/// "met", "missed" (the whole interval is beyond), or "open" (the interval holds the target).
/// `at_most` true: small ratios are good.
std::string verdict(const Ratio& ratio, double target, bool at_most);

/// One comparison for the report and one line on stderr.
Json report_ratio(const std::string& name, const Ratio& ratio, const Ratio& control, double target,
                  bool at_most);

/// What the first of three contenders takes more than the second, in microseconds a call: median of
/// the rounds' differences. The third is the second's control. For the report, and a line on
/// stderr.
Json report_difference(const std::string& name, const Times& times, double target_us);

/// Calls a second as a share of `ideal` of them: median over a quarter of the rounds and three.
/// `run` returns how many calls it made.
double share_of_ideal(const Settings& settings, double ideal, const std::function<double()>& run);
/// The share of the ideal rate that four cores of 1 ms jobs reach with sets of `size` handles each,
/// for the report, and a line on stderr. At least 0.95 is asked from size 2 on.
Json report_share(std::size_t size, double share, std::optional<double> callbacks_alone = {});

/// The same contender; notes the processor time of the process for each call, which a busy machine
/// changes less. `seconds` outlives it.
Contender metered(std::vector<double>& seconds, Contender one);
/// The processor time of three contenders that were metered: as report_difference(), without a
/// target.
Json report_processor(const std::vector<double> (&seconds)[3]);

/// Calls `once` until `block` has passed; the clock is read every `stride` calls.
template <class F>
double run_for(Duration block, std::uint64_t stride, F once) {
  const auto end = real_clock()->now() + block;
  std::uint64_t calls = 0;
  do {
    for (std::uint64_t i = 0; i < stride; ++i) once();
    calls += stride;
  } while (real_clock()->now() < end);
  return static_cast<double>(calls);
}

/// CPU, processors, library versions: what a figure belongs to.
Json environment();
/// Writes the report to the path after `--out`, and to stdout.
int finish(int argc, char** argv, const Json& report);
/// What main() of a benchmark does: run, finish; a failure goes to stderr with `name`, exit code 1.
int run_program(const char* name, int argc, char** argv, Json (*run)(int, char**));
/// The value after `name` in argv, or `fallback`.
std::string argument(int argc, char** argv, const std::string& name, const std::string& fallback);

}  // namespace corelane::bench
