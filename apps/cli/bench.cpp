// `corelane bench`: latency and throughput of a model under a chosen load, for each point of a
// sweep over callers and rates; reports as text, JSON, CSV, HTML page and trace. Failed inferences
// are counted; only where none worked is the first failure the command's outcome.
#include <fmt/format.h>

#include "cli/input_feed.h"
#include "cli/load_generator.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "corelane/base/file.h"

namespace corelane::cli {
namespace {

struct Arguments {
  OpenArguments open;
  std::vector<std::string> inputs;
  double warm_up = 0.2;
  double seconds = 3;
  std::uint64_t count = 0;
  std::vector<std::size_t> concurrency{1};
  std::vector<double> rates;
  bool poisson = false;
  std::uint64_t seed = 1;
  std::string cores = "any";
  bool set = false;
  double timeout_ms = 0;
  std::string out_json, out_csv, out_trace, out_html;
};

/// Every number of callers with every rate.
std::vector<LoadPoint> points_of(const Arguments& a) {
  std::vector<LoadPoint> points;
  for (const auto c : a.concurrency) {
    if (a.rates.empty()) points.push_back({c, 0, false});
    for (const auto r : a.rates) points.push_back({c, r, a.poisson});
  }
  return points;
}

Status write_text(const std::string& path, const std::string& text) {
  return path.empty() ? Status() : write_file_atomic(path, as_byte_span(text));
}

/// What the device recorded, of all points: the ring keeps the last 20000 jobs of each core.
Status write_trace(const std::string& path, const Program& program) {
  if (path.empty()) return {};
  CORELANE_ASSIGN(auto records, program.device()->read_trace());
  std::vector<TraceSpan> spans;
  for (const auto& r : records) spans.push_back({r, program.description().name});
  return write_text(path, chrome_trace(program.device()->info(), spans));
}

/// A line of the table: the figures of a point, or with null the titles.
std::string line_text(const Json& point) {
  std::string text;
  for (const auto& column : bench_columns())
    text += fmt::format("{:>11}", point.is_null() ? column.title : column.text(point));
  return text + "\n";
}

Result<LoadSettings> settings_of(const Arguments& a) {
  LoadSettings settings;
  settings.warm_up = Duration(static_cast<std::int64_t>(a.warm_up * 1e9));
  settings.time = Duration(static_cast<std::int64_t>(a.seconds * 1e9));
  settings.count = a.count;
  settings.seed = a.seed;
  settings.run.timeout = Duration(static_cast<std::int64_t>(a.timeout_ms * 1e6));
  CORELANE_ASSIGN(settings.run.cores, device::parse_core_set(a.cores));
  return settings;
}

/// A file that cannot be written, or that is read, is found before the measurement, not after it.
Status check_reports(const Arguments& a) {
  ReadFiles read{possible_files(a.inputs), {a.open.model}, {}};
  read.files.emplace_back(a.open.model);
  return check_outputs({{"--out-json", a.out_json},
                        {"--out-csv", a.out_csv},
                        {"--out-trace", a.out_trace},
                        {"--out-html", a.out_html}},
                       read);
}

/// All reports are tried: one that cannot be written takes no other with it. The first failure.
Status write_reports(const Arguments& a, const Json& report, const std::vector<LoadResult>& results,
                     const Program& program) {
  Status first;
  const auto note = [&first](const Status& written) {
    if (first.ok()) first = written;
  };
  note(write_text(a.out_json, json_text(report)));
  if (!a.out_csv.empty()) note(write_text(a.out_csv, bench_csv(results)));
  if (!a.out_html.empty()) {
    std::vector<std::string> cores;
    for (const auto& c : program.device()->info().cores) cores.push_back(c.name);
    note(write_text(a.out_html, bench_page(report, results, cores)));
  }
  note(write_trace(a.out_trace, program));
  return first;
}

/// Some failures are a figure of the report; where nothing worked, the first one is the outcome.
Result<int> outcome(const std::vector<LoadResult>& results) {
  if (Interrupts::pending()) return kExitInterrupted;
  for (const auto& r : results) {
    if (r.samples.empty() && r.failed > 0) {
      return error(r.first_error.wrap(fmt::format("none of {} inferences of {} callers worked",
                                                  r.failed, r.point.concurrency)));
    }
  }
  for (const auto& r : results) {
    if (r.failed == 0) continue;
    std::fputs(fmt::format("corelane: {} of {} inferences failed, the first with: {}\n", r.failed,
                           r.failed + r.samples.size(), r.first_error.to_string())
                   .c_str(),
               stderr);
  }
  return kExitOk;
}

void note_not_started(const LoadResult& result) {
  if (result.not_started == 0) return;
  std::fputs(fmt::format("corelane: rate {}: {} inference{} due and not started when the load "
                         "ended; give more callers (-c) or a lower --rate\n",
                         result.point.rate, result.not_started, result.not_started == 1 ? "" : "s")
                 .c_str(),
             stderr);
}

Result<int> run(const Global& global, const Arguments& a) {
  CORELANE_TRY(check_reports(a));
  if (a.poisson && a.rates.empty()) {
    return error(Code::kInvalidArgument,
                 "--poisson spaces arrivals of an open loop; give their --rate as well");
  }
  CORELANE_ASSIGN(const LoadSettings settings, settings_of(a));
  CORELANE_ASSIGN(auto program, open_program(a.open));
  if (!a.out_trace.empty()) CORELANE_TRY(program.device()->set_trace(20000));
  // Each caller has a context, and random inputs, of its own.
  CORELANE_ASSIGN(const auto offered, shapes_of_files(program.description(), a.inputs));
  const auto feed = [&](Context& context, std::size_t i) -> Status {
    CORELANE_TRY(choose_shapes(context, program, a.open, offered));
    CORELANE_ASSIGN(
        [[maybe_unused]] const auto fed,
        feed_inputs(context, program.description(), {a.inputs, a.inputs.empty(), a.seed + i}));
    return {};
  };
  const auto make = [&](std::size_t i) -> Result<Context> {
    CORELANE_ASSIGN(auto context, program.new_context());
    CORELANE_TRY(feed(context, i));
    return context;
  };
  const auto measure = [&](const LoadPoint& point) {
    return a.set ? run_set_load(point, settings, program, {feed}) : run_load(point, settings, make);
  };
  Json report{{"model", a.open.model},
              {"corelane", std::string("corelane ") + version()},
              {"device", program.device()->info().instance},
              {"engine", program.device()->info().engine},
              {"set", a.set},
              {"points", Json::array()}};
  if (!global.json) print(line_text(nullptr));
  // Only from here on: before, Ctrl-C ends the command at once.
  const Interrupts interrupts;
  std::vector<LoadResult> results;
  Status stopped;  // A point that cannot be measured ends the sweep; those before it count.
  for (const auto& point : points_of(a)) {
    if (Interrupts::pending()) break;
    auto result = measure(point);
    if (!result) {
      stopped = result.error();
      break;
    }
    report["points"].push_back(summarize_load(*result));
    if (!global.json) print(line_text(report["points"].back()));
    if (!global.quiet) note_not_started(*result);
    results.push_back(std::move(*result));
  }
  if (results.empty() && !stopped.ok()) return error(stopped);
  if (!stopped.ok()) report["stopped"] = stopped.to_string();
  report["interrupted"] = Interrupts::pending();
  report["memory"] = to_json(program.memory());
  report["forms"] = forms_json(program);
  const Status written = write_reports(a, report, results, program);
  return print_outcome(global, report, forms_text(program),
                       !stopped.ok()   ? Result<int>(error(stopped))
                       : !written.ok() ? Result<int>(error(written))
                                       : outcome(results));
}

}  // namespace

Action add_bench(CLI::App& parent, Global& global) {
  auto* app = parent.add_subcommand("bench", "Measure latency and throughput under a load");
  auto a = std::make_shared<Arguments>();
  add_open_options(*app, a->open);
  add_list(*app, "-i,--input", a->inputs, "[NAME=]FILE as in `run` (default: random)");
  app->add_option("--warm-up", a->warm_up, "Seconds before measuring")
      ->capture_default_str()
      ->check(between(0, 3600));
  app->add_option("-t,--time", a->seconds, "Seconds per point")
      ->capture_default_str()
      ->check(between(0.001, 86400));
  app->add_option("-n,--count", a->count, "Inferences per point instead of --time")
      ->check(between(1, 1e8));
  app->add_option("-c,--concurrency", a->concurrency,
                  "Callers (default: 1); a list sweeps, '1,2,4'")
      ->delimiter(',')
      ->allow_extra_args(false)  // The model may follow.
      ->check(between(1, 1024));
  app->add_option("-r,--rate", a->rates, "Arrivals per second (open loop); a list sweeps")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(between(0.001, 1e6));
  app->add_flag("--poisson", a->poisson, "Exponential gaps between arrivals");
  app->add_option("--seed", a->seed, "Seed of inputs and arrivals")
      ->capture_default_str()
      ->check(between(0, 1e18));
  app->add_option("--cores", a->cores, "any (default), any:2, platform, or a list such as 0,2");
  app->add_flag("--set", a->set,
                "One thread with an inference set of --concurrency handles instead of callers");
  app->add_option("--timeout", a->timeout_ms, "Deadline of each inference in milliseconds")
      ->check(between(0, kLongestMs));
  app->add_option("--out-json", a->out_json, "Write the report");
  app->add_option("--out-csv", a->out_csv, "Write one line per inference");
  app->add_option("--out-trace", a->out_trace, "Write a Chrome/Perfetto trace of the cores");
  app->add_option("--out-html", a->out_html, "Write a page with histogram and timeline");
  return [&global, a] { return run(global, *a); };
}

}  // namespace corelane::cli
