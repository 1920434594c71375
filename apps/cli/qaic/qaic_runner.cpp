// `corelane qaic-runner`: runs a program of a folder with the options of the object runtime's own
// runner, and prints the lines that scripts read of it.
#include <fmt/format.h>

#include <filesystem>
#include <random>

#include "cli/compile_target.h"
#include "cli/input_feed.h"
#include "cli/load_generator.h"
#include "cli/options.h"
#include "cli/qaic/runner_profiler.h"
#include "cli/qaic/runner_report.h"
#include "cli/qaic/runner_results.h"
#include "cli/qaic/vendor_container.h"
#include "corelane/base/file.h"
#include "corelane/base/printable.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/runtime/chain_devices.h"

namespace corelane::cli {
namespace {

/// A line for people, while the work goes on.
void note(const std::string& text) { std::fputs(printable_lines(text).c_str(), stderr); }

/// The file that -t names. kForeignImage for a container of the vendor's compiler.
Result<std::filesystem::path> program_file(const RunnerOptions& o) {
  std::error_code ec;
  std::filesystem::path path = o.program;
  if (std::filesystem::is_directory(path, ec)) path = target_file(path);
  CORELANE_ASSIGN(const MappedFile mapped, MappedFile::open(path));
  if (is_vendor_container(mapped.bytes())) {
    return error(Code::kForeignImage,
                 "'{}' is a container of the vendor's compiler, with code for the vendor's device; "
                 "`corelane inspect` lists it. Compile its ONNX model with `corelane compile "
                 "MODEL.onnx --target {} -o DIR`",
                 path.string(), compile_targets().front());
  }
  return path;
}

Status fill_random_bytes(Context& context, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < context.inputs().size(); ++i) {
    CORELANE_ASSIGN(const MutableTensorView view, context.input(i));
    auto* bytes = static_cast<std::byte*>(view.data);
    for (std::size_t k = 0; k < view.size; ++k) bytes[k] = static_cast<std::byte>(random());
  }
  return {};
}

/// One run of the program in one place.
class Run {
 public:
  Run(const RunnerOptions& options, Program program, std::vector<RunnerItem> items)
      : options_(options),
        program_(std::move(program)),
        items_(std::move(items)),
        results_(program_.description(), options_, items_),
        profiler_(options_.profiling, profiled(program_)) {}

  Result<LoadResult> measure() {
    SetLoad load;
    load.options = runner_set(options_);
    load.warm_up = false;
    load.feed = [this](Context& context, std::size_t) { return feed(context); };
    load.begin = [this](InferenceSet& set) {
      // The rate counts from here: the program is loaded, and its set is made.
      live_.emplace(live_options(), real_clock()->now());
      return profiler_.begin(set);
    };
    // One item alone is in all handles since feed().
    if (items_.size() > 1) {
      load.prepare = [this](Context& context, std::uint64_t number) {
        return give_item(context, items_[number % items_.size()]);
      };
    }
    load.collected = [this](const SetHandle& handle) { return results_.take(handle); };
    if (options_.live || options_.live_table) {
      load.progress = [this](const LoadResult& result) {
        note(live_->report(result, real_clock()->now()));
      };
    }
    CORELANE_ASSIGN(LoadResult result,
                    run_set_load({std::size_t{options_.set_size} * options_.activations, 0, false},
                                 runner_load(options_), program_, load));
    profiler_.finish();
    return result;
  }

  const RunnerResults& results() const { return results_; }
  const RunnerProfiler& profiler() const { return profiler_; }
  const Program& program() const { return program_; }

 private:
  static std::shared_ptr<const edge::ProfiledProgram> profiled(const Program& program) {
    const auto& device = program.device();
    return std::make_shared<const edge::ProfiledProgram>(
        edge::ProfiledProgram{0, program.description().name, device->info(), device->clock()});
  }

  /// All handles have the same inputs, until those of their inference come.
  Status feed(Context& context) {
    CORELANE_TRY(give_item(context, items_.front()));
    for (const auto& input : items_.front().inputs)
      if (input) return {};
    if (options_.sources.unbound_random) return fill_random_bytes(context, 1);
    CORELANE_ASSIGN([[maybe_unused]] const auto fed,
                    feed_inputs(context, program_.description(), {{}, true, 1}));
    return {};
  }

  LiveReport::Options live_options() const {
    return {Duration(static_cast<std::int64_t>(options_.live_period_ms * 1e6)), options_.live,
            options_.live_table};
  }

  const RunnerOptions& options_;
  Program program_;
  std::vector<RunnerItem> items_;
  RunnerResults results_;
  RunnerProfiler profiler_;
  std::optional<LiveReport> live_;
};

struct Measured {
  std::unique_ptr<Run> run;
  LoadResult result;
};

/// One device by its text, or those of a mapping together.
Status choose(const RunnerPlace& place, LoadOptions& options) {
  if (place.devices.size() == 1) {
    options.device = place.devices.front();
    return {};
  }
  std::vector<std::shared_ptr<device::Device>> devices;
  for (const std::string& text : place.devices) {
    CORELANE_ASSIGN(auto device, device::open_device(text));
    devices.push_back(std::move(device));
  }
  CORELANE_ASSIGN(options.on, chain_devices(std::move(devices)));
  return {};
}

/// Asked before cores are taken: the failure to take them would name this process as their holder.
Status check_cores(const Program& program, const RunnerPlace& place, const RunnerOptions& o) {
  const std::uint64_t each = std::max<std::uint32_t>(program.description().cores, 1);
  const std::size_t there = program.device()->info().cores.size();
  if (each * o.activations <= there) return {};
  return error(Code::kOutOfCores, "{} activations of {} cores each need {} cores; {} has {}",
               o.activations, each, each * o.activations, place.name, there);
}

Result<Measured> measure_on(const RunnerPlace& place, const std::filesystem::path& path,
                            const RunnerOptions& o) {
  LoadOptions options;
  CORELANE_TRY(choose(place, options));
  CORELANE_ASSIGN(Program program, Program::load(path, options));
  CORELANE_TRY(check_cores(program, place, o));
  CORELANE_ASSIGN(auto items, runner_items(program.description(), o));
  if (o.verbose) {
    note(fmt::format("program '{}' on {}: {} activations of {} cores, {} handles each, inputs {}\n",
                     path.string(), place.name, o.activations, program.description().cores,
                     o.set_size,
                     items.front().inputs.empty() || !items.front().inputs.front()
                         ? std::string("random")
                         : fmt::format("of {} inferences", items.size())));
  }
  auto run = std::make_unique<Run>(o, std::move(program), std::move(items));
  CORELANE_ASSIGN(LoadResult result, run->measure());
  return Measured{std::move(run), std::move(result)};
}

/// Whether another device may have what this one has not.
bool lacks_room(const Status& status) {
  return status.code() == Code::kOutOfCores || status.code() == Code::kOutOfMemory ||
         status.code() == Code::kDeviceLost;
}

Result<Measured> measure_on_first(const std::filesystem::path& path, const RunnerOptions& o) {
  CORELANE_ASSIGN(const auto places, runner_places(o));
  std::string reasons;
  for (std::size_t i = 0;; ++i) {
    auto measured = measure_on(places[i], path, o);
    if (measured || !lacks_room(measured.error())) return measured;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", places[i].name,
                           measured.error().message());
    // After the last device: its own failure, or the reasons of all.
    if (i + 1 < places.size()) continue;
    if (places.size() == 1) return measured;
    return error(measured.error().code(), "no device has room: {}", reasons);
  }
}

std::string as_text(const RunnerResults& results, const LoadResult& result, std::uint32_t batch) {
  std::string text;
  if (results.compared() > 0) {
    text += fmt::format("Outputs of {} inferences compared, {} differ{}{}\n", results.compared(),
                        results.different(), results.different() > 0 ? ", the first: " : "",
                        results.first_difference());
  }
  return text + stats_lines(result, batch) + metric_table(device_metrics(result.samples));
}

/// What became of profiling, for people.
void note_profiles(const RunnerProfiler& profiler, const RunnerOptions& o) {
  if (o.profiling.types.empty()) return;
  if (o.verbose)
    for (const std::string& file : profiler.written()) note("written " + file + "\n");
  if (profiler.written().empty() && profiler.status().ok())
    note(
        "corelane: no inference was profiled, and no report written: the run had ended before "
        "--aic-profiling-start-delay or --aic-profiling-start-iter, or nothing was collected\n");
  if (profiler.dropped() > 0)
    note(
        fmt::format("corelane: {} inferences are in no report: they ended faster than reports "
                    "were written\n",
                    profiler.dropped()));
}

/// Interrupted, then failures, then reports that were not written, then differences: the first
/// decides the exit code.
Result<int> outcome(const Run& run, const LoadResult& result) {
  const RunnerResults& results = run.results();
  if (Interrupts::pending()) return kExitInterrupted;
  if (result.failed > 0) {
    return error(
        result.first_error.wrap(fmt::format("{} of {} inferences failed, the first with",
                                            result.failed, result.failed + result.samples.size())));
  }
  if (const Status& profiled = run.profiler().status(); !profiled.ok())
    return error(profiled.wrap("a profiling report was not written"));
  if (results.different() == 0) return kExitOk;
  std::fputs(fmt::format("corelane: the outputs of {} of {} inferences are not as expected: {}\n",
                         results.different(), results.compared(), results.first_difference())
                 .c_str(),
             stderr);
  return kExitCheckFailed;
}

Result<int> run(const Global& global, const CLI::App& app, const RunnerOptions& o) {
  CORELANE_TRY(check_runner_options(app, o));
  CORELANE_ASSIGN(const auto path, program_file(o));
  const Interrupts interrupts;
  // `interrupts` stands before it: from here on Ctrl-C ends the load, and the figures so far are
  // printed.
  CORELANE_ASSIGN(const Measured measured, measure_on_first(path, o));
  const RunnerResults& results = measured.run->results();
  const Program& program = measured.run->program();
  if (o.verbose)
    for (const std::string& file : results.written()) note("written " + file + "\n");
  const std::uint32_t batch = program.description().batch;
  Json report{{"program", path.string()}, {"device", program.device()->info().instance}};
  report.update(report_json(measured.result, batch));
  report["compared"] = results.compared();
  report["different"] = results.different();
  report["written"] = results.written();
  report["profiles"] = measured.run->profiler().written();
  report["profiles_dropped"] = measured.run->profiler().dropped();
  report["interrupted"] = Interrupts::pending();
  note_profiles(measured.run->profiler(), o);
  return print_outcome(global, report, as_text(results, measured.result, batch),
                       outcome(*measured.run, measured.result));
}

}  // namespace

Action add_qaic_runner(CLI::App& parent, Global& global) {
  auto* app = parent.add_subcommand(
      "qaic-runner", "Run a program of the object runtime with the options of its runner");
  auto o = std::make_shared<RunnerOptions>();
  add_runner_options(*app, *o);
  return [&global, app, o] { return run(global, *app, *o); };
}

}  // namespace corelane::cli
