#include "cli/qaic/runner_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/compile_target.h"
#include "cli/load_generator.h"
#include "cli/options.h"
#include "corelane/device/registry.h"

namespace corelane::cli {
namespace {

constexpr const char* kDevices = "CORELANE_QAIC_DEVICES";

/// The most inferences of a report.
// ProfilingObject::kMostSamples of the object runtime.
constexpr std::uint32_t kMostSamples = 1U << 20;

/// What a timeout of 0 means.
constexpr double kDriverTimeoutMs = 5000;

void add_load_options(CLI::App& app, RunnerOptions& o) {
  auto* count = app.add_option("-n,--num-iter", o.iterations, "Inferences, of all activations")
                    ->capture_default_str()
                    ->check(between(1, 1e8));
  app.add_option("--time", o.seconds, "Seconds for which inferences are submitted")
      ->check(between(0.001, 86400))
      ->excludes(count);
  app.add_option("-a,--aic-num-of-activations", o.activations,
                 "Activations, each with cores of its own")
      ->capture_default_str()
      ->check(between(1, 64));
  app.add_option("-S,--set-size", o.set_size, "Handles of each activation")
      ->capture_default_str()
      ->check(between(1, 1024));
  app.add_option("-T,--aic-threads-per-queue", o.queue_threads,
                 "Taken and without effect: queues have no threads here")
      ->capture_default_str()
      ->check(between(1, 1024));
  app.add_option("--submit-timeout", o.timeout_ms, "Milliseconds of an attempt; 0 is 5000")
      ->capture_default_str()
      ->check(between(0, kLongestMs));
  app.add_option("--submit-retry-count", o.retries, "Attempts after the first that timed out")
      ->capture_default_str()
      ->check(between(0, 100));
  app.add_option("-p,--pre-post-processing", o.processing,
                 "on or off: without effect, since tensors are transferred as the user has them")
      ->capture_default_str()
      ->check(CLI::IsMember({"on", "off"}));
}

void add_report_options(CLI::App& app, RunnerOptions& o) {
  app.add_flag("-l,--live-reporting", o.live, "Count and rate so far, periodically, on stderr");
  app.add_option("-r,--live-reporting-period", o.live_period_ms, "Milliseconds between them")
      ->capture_default_str()
      ->check(between(1, kLongestMs));
  app.add_flag("-s,--stats", o.live_table, "The device table so far, periodically, on stderr");
  app.add_flag("-v,--verbose", o.verbose, "What is opened, read and written, on stderr");
}

void add_source_options(CLI::App& app, RunnerSources& s) {
  auto* files = add_list(app, "-i,--input-file", s.files,
                         "File with the bytes of an input, in order of the inputs (repeatable; "
                         "default: random values)");
  auto* directory = app.add_option("--aic-batch-input-directory", s.directory,
                                   "Each file of it is an inference, of a network with one input");
  auto* list = app.add_option("--aic-batch-input-file-list", s.list,
                              "File of lines, each the files of an inference divided by commas");
  auto* json = app.add_option("--aic-batch-json-input", s.json,
                              "File of JSON with paths, dimensions and names of buffers");
  files->excludes(directory)->excludes(list)->excludes(json);
  directory->excludes(list)->excludes(json);
  list->excludes(json);
  app.add_option("--aic-batch-max-memory", s.max_megabytes, "MB that the files may take together")
      ->capture_default_str()
      ->check(between(1, 1e7));
  app.add_flag("--auto-batch-input", s.auto_batch,
               "Files are for batch size 1; as many as the program's batch go together");
  app.add_flag("--unbound-random", s.unbound_random, "Random bytes, whatever the inputs' types");
}

void add_write_options(CLI::App& app, RunnerOptions& o) {
  app.add_option("--write-output-start-iter", o.write.start,
                 "First inference whose outputs are written (0)")
      ->check(between(0, 1e18));
  app.add_option("--write-output-num-samples", o.write.count,
                 "Inferences whose outputs are written (1)")
      ->check(between(1, 1e18));
  app.add_option("--write-output-dir", o.write.folder, "Folder that is there, for outputs (.)");
  app.add_flag("--dump-input-buffers", o.write.inputs, "Write the inputs of these inferences, too");
  add_list(app, "-o,--output-file", o.checks.files,
           "File with the bytes expected of an output, in order of the outputs (repeatable)");
  app.add_flag("--compare-outputs", o.checks.listed,
               "Compare with the outputs' files of the list or the JSON file");
  app.add_option("--max-error", o.checks.max_error,
                 "Allowed error relative to the largest expected element; 0: equal bytes")
      ->capture_default_str()
      ->check(between(0, 1e30));
}

void add_profiling_options(CLI::App& app, RunnerProfiling& p) {
  add_list(
      app, "--aic-profiling-type,--aic-profiling-format", p.types,
      "latency, trace, raw_device_stats, latency_stream or trace_stream (repeatable); stats is "
      "refused: see corelane run --profile")
      ->check(CLI::IsMember(
          {"latency", "trace", "stats", "raw_device_stats", "latency_stream", "trace_stream"}));
  app.add_option("--aic-profiling-start-iter", p.start_iteration,
                 "First inference profiled, from 0")
      ->capture_default_str()
      ->check(between(0, 1e18));
  app.add_option("--aic-profiling-start-delay", p.start_delay_ms,
                 "Milliseconds of the run before it starts")
      ->check(between(0, kLongestMs));
  app.add_option("--aic-profiling-num-samples", p.samples,
                 "Inferences of a report, for types that are not streams")
      ->capture_default_str()
      ->check(between(1, kMostSamples));
  app.add_option("--aic-profiling-duration", p.duration_ms,
                 "Milliseconds until it stops (0: with the run)")
      ->check(between(0, kLongestMs));
  app.add_option("--aic-profiling-sampling-rate", p.sampling_rate,
                 "Of the streams: which inferences are samples")
      ->capture_default_str()
      ->check(
          CLI::IsMember(std::vector<std::string>(kSamplingRates.begin(), kSamplingRates.end())));
  app.add_option("--aic-profiling-reporting-rate", p.reporting_rate,
                 "Of the streams: milliseconds of a report")
      ->capture_default_str()
      ->check(CLI::IsMember({"500", "1000", "2000", "4000"}));
  app.add_option("--aic-profiling-out-dir", p.folder, "Folder that is there, for reports")
      ->capture_default_str();
}

/// A folder that is there and may be written to.
Status check_folder(const std::string& folder, const char* option) {
  std::error_code ec;
  if (!std::filesystem::is_directory(folder, ec))
    return error(Code::kIo, "{} '{}' is not a folder that is there; make it first", option, folder);
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return error(Code::kIo, "{} '{}' cannot be written to: {}", option, folder, std::strerror(errno));
}

/// Options of profiling that were given, but for the type; their names.
std::vector<std::string> given_profiling(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() > 0 && name.starts_with("--aic-profiling") &&
        name != "--aic-profiling-type")
      names.push_back(name);
  }
  return names;
}

/// Refuses options for profiling types that were not given.
Status check_profiling_kinds(const CLI::App& app, const RunnerProfiling& p) {
  const auto is_stream = [](const std::string& type) { return type.ends_with("_stream"); };
  const bool streams = std::ranges::any_of(p.types, is_stream);
  const bool counts = !std::ranges::all_of(p.types, is_stream);
  for (const std::string& name : given_profiling(app)) {
    if (!streams && name.ends_with("-rate")) {
      return error(Code::kInvalidArgument,
                   "{} is for the streams, and --aic-profiling-type {} is not one; leave it out, "
                   "or give latency_stream or trace_stream",
                   name, p.types.front());
    }
    if (!counts && name == "--aic-profiling-num-samples") {
      return error(Code::kInvalidArgument,
                   "{} is for reports of a number of inferences, and --aic-profiling-type {} is a "
                   "stream; leave it out, or bound the stream with --aic-profiling-duration",
                   name, p.types.front());
    }
  }
  return {};
}

Status check_profiling(const CLI::App& app, const RunnerOptions& o) {
  const RunnerProfiling& p = o.profiling;
  if (p.types.empty()) {
    const std::vector<std::string> given = given_profiling(app);
    if (given.empty()) return {};
    return error(Code::kInvalidArgument,
                 "{} says how to profile, but nothing says what: give --aic-profiling-type, or "
                 "leave it out",
                 given.front());
  }
  if (std::ranges::find(p.types, "stats") != p.types.end()) {
    return error(Code::kUnsupported,
                 "--aic-profiling-type stats: inferences of a set have no statistics of operators; "
                 "`corelane run --profile` has the time of each layer; the types are latency, "
                 "trace, raw_device_stats, latency_stream and trace_stream");
  }
  CORELANE_TRY(check_profiling_kinds(app, p));
  if (o.seconds <= 0 && p.start_iteration >= o.iterations) {
    return error(Code::kInvalidArgument,
                 "--aic-profiling-start-iter {}: the run has the inferences 0 to {}; give one of "
                 "them, or more with -n",
                 p.start_iteration, o.iterations - 1);
  }
  return check_folder(p.folder, "--aic-profiling-out-dir");
}

std::optional<std::size_t> number_of(const std::string& text) {
  std::size_t number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// The list of the environment, or what stands for it.
Result<std::vector<std::string>> listed_devices() {
  const char* const list = ::secure_getenv(kDevices);
  CORELANE_ASSIGN(auto texts, device::parse_device_list(list == nullptr ? "" : list, kDevices));
  if (texts.empty()) texts.emplace_back(kTargetDevice);
  return texts;
}

Result<std::string> listed_device(const std::vector<std::string>& texts, std::size_t number) {
  if (number < texts.size()) return texts[number];
  return error(Code::kNotFound, "no device {}; {} (the list is {})", number,
               texts.size() == 1 ? std::string("the only one is 0")
                                 : fmt::format("there are 0 to {}", texts.size() - 1),
               kDevices);
}

RunnerPlace place_on(const std::string& text) { return {text, {text}}; }

/// "0:1" or "0,1", each number once.
Result<std::vector<RunnerPlace>> mapped_place(const std::string& mapping) {
  CORELANE_ASSIGN(const auto texts, listed_devices());
  RunnerPlace place{mapping, {}};
  std::vector<std::size_t> numbers;
  for (std::size_t begin = 0; begin <= mapping.size();) {
    const std::size_t end = std::min(mapping.find_first_of(":,", begin), mapping.size());
    const std::string item = mapping.substr(begin, end - begin);
    const auto number = number_of(item);
    if (!number)
      return error(Code::kInvalidArgument,
                   "-D {}: '{}' is not a number of a device; give one for each part, such as 0:1",
                   mapping, item);
    if (std::ranges::find(numbers, *number) != numbers.end())
      return error(Code::kInvalidArgument,
                   "-D {}: device {} stands there twice; give each part a device of its own, or "
                   "-d to run all parts on one",
                   mapping, *number);
    auto text = listed_device(texts, *number);
    if (!text) return error(text.error().wrap("-D " + mapping));
    numbers.push_back(*number);
    place.devices.push_back(*std::move(text));
    begin = end + 1;
  }
  return std::vector{std::move(place)};
}

}  // namespace

bool RunnerWrite::takes(std::uint64_t number) const {
  if (!outputs() && !inputs) return false;
  const std::uint64_t first = start.value_or(0);
  return number >= first && number - first < count.value_or(1);
}

void add_runner_options(CLI::App& app, RunnerOptions& o) {
  app.add_option("-t,--test-data", o.program,
                 "Folder with programqpc.bin, a program file, or an ONNX model")
      ->required();
  auto* device = app.add_option("-d,--dev,--aic-device-id", o.device,
                                "Number of a device in CORELANE_QAIC_DEVICES, or a device's text "
                                "(default: the first that has room)");
  app.add_option("-D,--dev-list,--aic-device-map", o.device_list,
                 "Numbers of the devices of a program for several, such as 0:1")
      ->excludes(device);
  add_source_options(app, o.sources);
  add_load_options(app, o);
  add_report_options(app, o);
  add_write_options(app, o);
  add_profiling_options(app, o.profiling);
}

Status check_runner_options(const CLI::App& app, const RunnerOptions& o) {
  CORELANE_TRY(check_profiling(app, o));
  const RunnerSources& s = o.sources;
  const bool files = !s.files.empty() || !s.directory.empty() || !s.list.empty() || !s.json.empty();
  if (s.unbound_random && files) {
    return error(Code::kInvalidArgument,
                 "--unbound-random makes random inputs, but their files are given; give one of "
                 "both");
  }
  if (s.auto_batch && !files) {
    return error(Code::kInvalidArgument,
                 "--auto-batch-input puts files together; give them with -i or an "
                 "--aic-batch option");
  }
  if (o.checks.listed && s.list.empty() && s.json.empty()) {
    return error(Code::kInvalidArgument,
                 "--compare-outputs needs the files of outputs in --aic-batch-input-file-list or "
                 "--aic-batch-json-input; for -i give them with -o");
  }
  if (!o.checks.files.empty() && (!s.directory.empty() || !s.list.empty() || !s.json.empty())) {
    return error(Code::kInvalidArgument,
                 "-o goes with -i or with random inputs; in a list or a JSON file the outputs have "
                 "files of their own (--compare-outputs)");
  }
  if (o.checks.max_error > 0 && !o.checks.any()) {
    return error(Code::kInvalidArgument,
                 "--max-error is for a comparison; give -o or --compare-outputs as well");
  }
  if (!o.write.folder.empty()) return check_folder(o.write.folder, "--write-output-dir");
  return {};
}

LoadSettings runner_load(const RunnerOptions& o) {
  LoadSettings settings;
  // 0: the time ends the load.
  settings.count = o.seconds > 0 ? 0 : o.iterations;
  settings.time = Duration(static_cast<std::int64_t>(o.seconds * 1e9));
  return settings;
}

SetOptions runner_set(const RunnerOptions& o) {
  SetOptions set;
  set.size = o.set_size;
  set.activations = o.activations;
  set.activate = ActivateOptions{};
  const double ms = o.timeout_ms > 0 ? o.timeout_ms : kDriverTimeoutMs;
  set.attempt_time = Duration(static_cast<std::int64_t>(ms * 1e6));
  set.retries = o.retries;
  set.room_time = std::chrono::seconds(6);  // As libQAic.so waits for room in a device's line.
  return set;
}

Result<std::vector<RunnerPlace>> runner_places(const RunnerOptions& o) {
  if (o.device_list.find_first_of(":,") != std::string::npos) return mapped_place(o.device_list);
  const std::string& wanted = o.device.empty() ? o.device_list : o.device;
  const auto number = number_of(wanted);
  // A negative number would pass for a device's text.
  if (wanted.starts_with('-'))
    return error(Code::kNotFound, "no device {}; devices are numbered from 0 (the list is {})",
                 wanted, kDevices);
  if (!wanted.empty() && !number) return std::vector{place_on(wanted)};
  CORELANE_ASSIGN(const auto texts, listed_devices());
  if (number) {
    CORELANE_ASSIGN(const std::string text, listed_device(texts, *number));
    return std::vector{place_on(text)};
  }
  std::vector<RunnerPlace> places;
  for (const std::string& text : texts) places.push_back(place_on(text));
  return places;
}

}  // namespace corelane::cli
