/// The options of `corelane qaic-runner`. Their names and defaults are those of the tool that it
/// stands in for; what each means here, and where that was found, is in docs/apis/qaic-runner.md.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "corelane/base/status.h"

namespace corelane {
struct SetOptions;
}

namespace corelane::cli {

struct LoadSettings;

/// Which inferences' buffers are written, and where.
struct RunnerWrite {
  std::optional<std::uint64_t> start;
  std::optional<std::uint64_t> count;
  std::string folder;
  bool inputs = false;

  bool outputs() const { return start || count || !folder.empty(); }
  /// Whether those of inference `number` are.
  bool takes(std::uint64_t number) const;
};

/// Where inputs come from; without any they are random.
struct RunnerSources {
  std::vector<std::string> files;
  std::string directory;
  std::string list;
  std::string json;
  std::uint64_t max_megabytes = 1024;
  bool auto_batch = false;
  bool unbound_random = false;
};

/// What results are compared with.
struct RunnerChecks {
  std::vector<std::string> files;
  bool listed = false;  ///< With the outputs' files of the list or the JSON file.
  double max_error = 0;

  bool any() const { return listed || !files.empty(); }
};

/// Values of --aic-profiling-sampling-rate: the one at place n takes one inference of 2^n.
inline constexpr std::array<const char*, 5> kSamplingRates{"full", "half", "fourth", "eighth",
                                                           "sixteenth"};

/// What is asked of profiling; no type asks for none.
struct RunnerProfiling {
  std::vector<std::string> types;
  std::uint64_t start_iteration = 0;
  double start_delay_ms = 0;
  std::uint32_t samples = 1;
  double duration_ms = 0;
  std::string sampling_rate = "full";
  std::string reporting_rate = "500";
  std::string folder = ".";
};

struct RunnerOptions {
  std::string program;
  std::string device;
  std::string device_list;
  std::uint64_t iterations = 40;
  double seconds = 0;  ///< Above 0: instead of iterations.
  std::uint32_t activations = 1;
  std::uint32_t set_size = 10;
  std::uint32_t queue_threads = 4;
  bool live = false;
  double live_period_ms = 1000;
  bool live_table = false;
  double timeout_ms = 0;
  std::uint32_t retries = 5;
  std::string processing = "on";
  bool verbose = false;
  RunnerSources sources;
  RunnerWrite write;
  RunnerChecks checks;
  RunnerProfiling profiling;
};

void add_runner_options(CLI::App& app, RunnerOptions& options);

/// What the parser cannot say of the options together, and of files that would be found too late:
/// kInvalidArgument, kUnsupported, kIo.
Status check_runner_options(const CLI::App& app, const RunnerOptions& options);

/// Time or count, and the options of the set.
LoadSettings runner_load(const RunnerOptions& options);
SetOptions runner_set(const RunnerOptions& options);

/// Where a program may run: on one device, or on one for each of its parts.
struct RunnerPlace {
  std::string name;                  ///< Of the device, or the mapping as given.
  std::vector<std::string> devices;  ///< Their texts.
};
/// The places to try, in their order: the one that -d or -D names, by numbers in
/// CORELANE_QAIC_DEVICES or by a text, else each device of that list. kNotFound, kInvalidArgument.
Result<std::vector<RunnerPlace>> runner_places(const RunnerOptions& options);

}  // namespace corelane::cli
