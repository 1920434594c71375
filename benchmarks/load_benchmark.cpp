// Opening and memory on real models. Targets of the foundation: opening a pre-compiled program
// against compiling the ONNX model, geometric mean >= 2.5, none slower; the 2nd to 4th context
// together add at most 10 % of the first one's memory plus three times its own activations.
//
// Memory is what the kernel counts as anonymous memory of a fresh child process per model.
#include <cmath>
#include <cstdlib>
#include <thread>

#include "child_process.h"
#include "corelane/base/file.h"
#include "corelane/device/device.h"
#include "corelane/onnx/onnx_import.h"
#include "corelane/program/program_file.h"
#include "corelane/runtime/program.h"
#include "harness.h"
#include "model_list.h"

namespace corelane::bench {
namespace {

Context run_new_context(const Program& program, const RealModel& model) {
  auto context = take(program.new_context());
  check(context.set_input_shapes(model.shapes));
  for (std::size_t i = 0; i < model.shapes.size(); ++i)
    check(context.input(i) ? Status() : context.input(i).error());
  RunOptions one;
  one.cores = device::CoreSet::of({0});
  check(context.run(one));
  return context;
}

Json memory_of(const RealModel& model, const std::filesystem::path& program_file) {
  const auto start = anonymous_bytes();
  LoadOptions options;
  options.cache = false;
  options.replicate_limit = 0;  // Shared placement, also for the small ones.
  const auto program = take(Program::load(program_file, options));
  std::vector<Context> contexts;
  contexts.push_back(run_new_context(program, model));
  const auto first = anonymous_bytes() - start;
  const auto figures_one = program.memory();
  for (int i = 0; i < 3; ++i) contexts.push_back(run_new_context(program, model));
  const auto added = anonymous_bytes() - start - std::min(first, anonymous_bytes() - start);
  const auto figures_four = program.memory();
  // Shared placement has as many streams as there are cores or processors, each with activations.
  const std::size_t processors = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t streams = std::min(program.device()->info().cores.size(), processors);
  const auto activations = figures_one.internal / streams;
  const auto allowed = first / 10 + 3 * activations;
  return {{"first_context_bytes", first},
          {"three_more_add_bytes", added},
          {"activations_of_one", activations},
          {"allowed_bytes", allowed},
          {"reported_one", figures_one.total()},
          {"reported_four", figures_four.total()},
          {"verdict", added <= allowed ? "met" : "missed"}};
}

std::filesystem::path make_program(const RealModel& model, const std::filesystem::path& folder) {
  CompileOptions options;
  options.precompile = true;
  options.time_engines = false;  // The form is what is measured.
  options.import.shape_sets = {};
  const auto program = take(import_onnx_file(model.path));
  for (std::size_t i = 0; i < model.shapes.size(); ++i)
    options.import.input_shapes[program.description.inputs[i].desc.name] = model.shapes[i];
  const auto bytes = take(compile_file(model.path, options));
  auto path = folder / (model.name + ".rknn");
  check(write_file_atomic(path, bytes));
  return path;
}

Json opening_of(const RealModel& model, const std::filesystem::path& file, const Settings& s) {
  const auto names = take(ProgramFile::open(file))->description();
  LoadOptions plain;
  plain.cache = false;
  for (std::size_t i = 0; i < model.shapes.size(); ++i)
    plain.import.input_shapes[names.inputs[i].desc.name] = model.shapes[i];
  LoadOptions opened;
  opened.cache = false;
  if (!take(Program::load(file, opened)).precompiled()) fail("the pre-compiled form was not used");
  const auto compile = [&](Duration) {
    take(Program::load(model.path, plain));
    return std::uint64_t{1};
  };
  const auto open = [&](Duration) {
    take(Program::load(file, opened));
    return std::uint64_t{1};
  };
  const auto t = measure({{"open", open}, {"compile", compile}, {"compile'", compile}}, s);
  auto j = report_ratio(model.name + ": compile / open", ratio_of(t[1], t[0]), ratio_of(t[2], t[1]),
                        1.0, false);
  j["open_ms"] = median_of(t[0]) * 1e3;
  j["compile_ms"] = median_of(t[1]) * 1e3;
  return j;
}

Json run(int argc, char** argv) {
  Settings settings;
  settings.rounds = std::stoi(argument(argc, argv, "--rounds", "15"));
  const auto models = real_models(argument(argc, argv, "--models-dir", CORELANE_SITE_PACKAGES));
  if (models.empty()) fail("no model is installed: run ./dev setup bench");
  std::string folder = (std::filesystem::temp_directory_path() / "corelane-load-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) fail("mkdtemp");
  Json report{{"benchmark", "load"}, {"environment", environment()}};
  // Children first: this process must not have the engine's threads when it forks.
  std::vector<std::filesystem::path> files;
  for (const auto& model : models) {
    const auto path = std::filesystem::path(folder) / (model.name + ".rknn");
    in_child([&]() -> Json { return make_program(model, folder).string(); });
    files.push_back(path);
    auto j = in_child([&] { return memory_of(model, path); });
    j["model"] = model.name;
    std::fprintf(stderr, "%s memory: %s\n", model.name.c_str(), j.dump().c_str());
    report["memory"].push_back(j);
  }
  double log_sum = 0;
  for (std::size_t i = 0; i < models.size(); ++i) {
    auto j = opening_of(models[i], files[i], settings);
    log_sum += std::log(j["ratio"].get<double>());
    report["opening"].push_back(j);
  }
  const double mean = std::exp(log_sum / static_cast<double>(models.size()));
  report["opening_geometric_mean"] = mean;
  report["opening_target"] = 2.5;
  std::fprintf(stderr, "opening, geometric mean: %.2f (target 2.5)\n", mean);
  std::filesystem::remove_all(folder);
  return report;
}

}  // namespace
}  // namespace corelane::bench

int main(int argc, char** argv) {
  return corelane::bench::run_program("load_benchmark", argc, argv, corelane::bench::run);
}
