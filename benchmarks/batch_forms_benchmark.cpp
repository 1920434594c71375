// Weights once over batch sizes: programs with a batch range against a program compiled for each
// size, on one core. Target: at each size from 1 to 8 at most 1.03 x the time where the budget
// allows a form of its own. The one form for all sizes is shown beside it, and what both take in
// memory: as Program::memory() reports it, and as the kernel counts it in a fresh process.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <random>

#include "child_process.h"
#include "corelane/base/file.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/onnx/onnx_import.h"
#include "corelane/runtime/program.h"
#include "model_list.h"
#include "tiny_model.h"

namespace corelane::bench {
namespace {

constexpr std::uint32_t kMost = 8;

/// ONNX bytes; one input, whose dimension 0 is the batch.
struct Network {
  std::string name;
  std::string onnx;
  Shape sample;        ///< Of one sample, with a leading 1.
  bool fixed = false;  ///< The model is for one sample, and the range is compiled.
};

/// Eight dense layers of 1024 x 1024 with a ReLU after each.
std::string dense_model() {
  using namespace wire;
  constexpr std::uint64_t kWidth = 1024;
  const auto dim = [](std::uint64_t n) { return bytes(1, number(1, n)); };
  const auto value = [&](const std::string& name) {
    const auto tensor = number(1, 1) + bytes(2, dim(1) + dim(kWidth));
    return bytes(1, name) + bytes(2, bytes(1, tensor));
  };
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-0.05F, 0.05F);
  std::string graph = bytes(2, "dense");
  for (int layer = 0; layer < 8; ++layer) {
    const std::string n = std::to_string(layer);
    std::vector<float> w(kWidth * kWidth);
    for (float& v : w) v = uniform(random);
    const std::string in = layer == 0 ? "x" : "h" + n;
    const std::string out = layer == 7 ? "y" : "h" + std::to_string(layer + 1);
    graph += bytes(1, bytes(1, in) + bytes(1, "w" + n) + bytes(2, "m" + n) + bytes(4, "MatMul"));
    graph += bytes(1, bytes(1, "m" + n) + bytes(2, out) + bytes(4, "Relu"));
    graph += bytes(5, number(1, kWidth) + number(1, kWidth) + number(2, 1) + bytes(8, "w" + n) +
                          bytes(9, {reinterpret_cast<const char*>(w.data()), w.size() * 4}));
  }
  graph += bytes(11, value("x")) + bytes(12, value("y"));
  return number(1, 8) + bytes(7, graph) + bytes(8, number(2, 13));
}

std::vector<Network> networks(const std::filesystem::path& models) {
  std::vector<Network> all{{"dense 8 x 1024 x 1024", dense_model(), Shape{1, 1024}, true}};
  for (const RealModel& model : real_models(models)) {
    if (model.name != "ocr-rec" && model.name != "orientation" && model.name != "ocr-cls") continue;
    const auto file = take(MappedFile::open(model.path));
    all.push_back({model.name, std::string(as_string_view(file.bytes())), model.shapes[0], false});
  }
  return all;
}

Shape rows(const Network& network, std::uint32_t batch) {
  Shape shape = network.sample;
  shape[0] = batch;
  return shape;
}

/// Of one core; each is a device of its own, so that nothing is shared but the processor.
LoadOptions one_core() {
  device::OpenOptions open;
  open.own_instance = true;
  LoadOptions options;
  options.on = take(device::open_device("virtual:generic:1", open));
  options.cache = false;
  return options;
}

/// From a program file, as programs are deployed: large constants are read where it lies.
Program load(const Network& network, const ImportOptions& import, const LoadOptions& options) {
  CompileOptions compile;
  compile.import = import;
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("corelane-forms-{}.rknn", ::getpid());
  check(write_file_atomic(path, take(compile_bytes(as_byte_span(network.onnx), compile))));
  auto program = take(Program::load(path, options));
  std::filesystem::remove(path);  // It stays mapped.
  return program;
}

Program load_range(const Network& network, std::size_t replicate_limit) {
  LoadOptions options = one_core();
  options.replicate_limit = replicate_limit;
  ImportOptions import;
  import.batch_range = BatchRange{1, kMost};
  if (network.fixed) return load(network, import, options);
  Shape open = network.sample;
  open[0] = Shape::kOpen;
  const auto input = take(import_onnx(as_byte_span(network.onnx))).description.inputs[0].desc.name;
  import.input_shapes[input] = open;
  return load(network, import, options);
}

Program load_static(const Network& network, std::uint32_t batch) {
  ImportOptions import;
  if (network.fixed) {
    import.batch = batch;
    return load(network, import, one_core());
  }
  const auto input = take(import_onnx(as_byte_span(network.onnx))).description.inputs[0].desc.name;
  import.input_shapes[input] = rows(network, batch);
  return load(network, import, one_core());
}

/// A context that runs one size over memory of its own.
struct Runner {
  Runner(Program of, const Network& network, std::uint32_t batch)
      : program(std::move(of)), context(take(program.new_context())) {
    const Shape shape = rows(network, batch);
    x.resize(static_cast<std::size_t>(*shape.elements()));
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
    for (float& v : x) v = uniform(random);
    check(context.set_input_shapes({shape}));
    check(context.bind_input(0, {x.data(), x.size() * 4, DType::kF32, shape, {}, {}}));
    check(context.run());
  }
  std::vector<float> answer() const {
    const TensorView y = take(context.output(0));
    const auto* first = static_cast<const float*>(y.data);
    return {first, first + *y.shape.elements()};
  }
  /// Another size of the same memory, which holds the first one's samples.
  void change(const Network& network, std::uint32_t batch) {
    const Shape shape = rows(network, batch);
    check(context.set_input_shapes({shape}));
    const auto bytes = static_cast<std::size_t>(*shape.elements()) * 4;
    check(context.bind_input(0, {x.data(), bytes, DType::kF32, shape, {}, {}}));
  }
  Contender contender(const std::string& name) {
    return {name,
            [this](Duration block) { return run_for(block, 1, [&] { check(context.run()); }); }};
  }

  Program program;
  Context context;
  std::vector<float> x;
};

/// Largest difference relative to the largest element.
double disagreement(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) fail("sizes of the answers differ");
  double worst = 0, peak = 1e-9;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::fabs(static_cast<double>(a[i]) - b[i]));
    peak = std::max(peak, std::fabs(static_cast<double>(b[i])));
  }
  return worst / peak;
}

Json one_size(const Network& network, std::uint32_t batch, const Settings& settings) {
  Runner open(load_range(network, 0), network, batch);
  Runner ranged(load_range(network, device::kReplicateLimit), network, batch);
  Runner fixed(load_static(network, batch), network, batch);
  Runner control(load_static(network, batch), network, batch);
  const double apart = disagreement(open.answer(), fixed.answer());
  check(ranged.program.make_batch_form(batch));
  check(ranged.context.run());
  if (apart > 1e-4) fail("the forms disagree");
  if (disagreement(ranged.answer(), fixed.answer()) > 1e-6) fail("the form of one size disagrees");
  const Times t = measure({ranged.contender("ranged"), open.contender("open"),
                           fixed.contender("static"), control.contender("static'")},
                          settings);
  Json j = report_ratio(fmt::format("{}, batch {}: range / static", network.name, batch),
                        ratio_of(t[0], t[2]), ratio_of(t[3], t[2]), 1.03, true);
  const Ratio shown = ratio_of(t[1], t[2]);
  j["open_form"] = {{"median", shown.median}, {"low", shown.low}, {"high", shown.high}};
  j["largest_difference_of_open_form"] = apart;
  std::fputs(
      fmt::format("    the form for all sizes: {:.3f} [{:.3f}, {:.3f}], answers {:.1e} apart, "
                  "static {:.2f} ms\n",
                  shown.median, shown.low, shown.high, apart, median_of(t[2]) * 1e3)
          .c_str(),
      stderr);
  return j;
}

/// Batches of 4 and 1 in turns: one context that changes its size, against a context for each.
Json changing_size(const Network& network, const Settings& settings) {
  Runner ranged(load_range(network, device::kReplicateLimit), network, 4);
  for (const std::uint32_t batch : {4U, 1U}) check(ranged.program.make_batch_form(batch));
  std::vector<std::unique_ptr<Runner>> fixed;
  for (const std::uint32_t batch : {4U, 1U, 4U, 1U})
    fixed.push_back(std::make_unique<Runner>(load_static(network, batch), network, batch));
  const auto pair = [&](const char* name, std::size_t first) {
    return Contender{name, [&fixed, first](Duration block) {
                       return run_for(block, 1, [&] {
                         check(fixed[first]->context.run());
                         check(fixed[first + 1]->context.run());
                       });
                     }};
  };
  const Contender changes{"ranged", [&](Duration block) {
                            return run_for(block, 1, [&] {
                              for (const std::uint32_t batch : {4U, 1U}) {
                                ranged.change(network, batch);
                                check(ranged.context.run());
                              }
                            });
                          }};
  const Times t = measure({changes, pair("static", 0), pair("static'", 2)}, settings);
  return report_ratio(network.name + ", batches 4 and 1 in turns: range / static",
                      ratio_of(t[0], t[1]), ratio_of(t[2], t[1]), 1.03, true);
}

/// Who serves the sizes from 1 to 8; the last one serves 8 alone, to compare with.
enum class Serving { kOneProgram, kProgramForEach, kProgramOfLargest };

Json memory_of(const Network& network, Serving serving) {
  // The engine itself is there in all cases, and is not what is compared.
  const Program first = take(Program::load(as_byte_span(unary_model("Erf", 16)), one_core()));
  check(take(first.new_context()).run());
  const auto start = anonymous_bytes();
  std::vector<std::unique_ptr<Runner>> runners;
  if (serving == Serving::kOneProgram) {
    runners.push_back(std::make_unique<Runner>(load_range(network, 0), network, kMost));
    for (std::uint32_t batch = 1; batch <= kMost; ++batch) {
      runners[0]->change(network, batch);
      check(runners[0]->context.run());
    }
  } else {
    const std::uint32_t least = serving == Serving::kProgramForEach ? 1 : kMost;
    for (std::uint32_t batch = least; batch <= kMost; ++batch)
      runners.push_back(std::make_unique<Runner>(load_static(network, batch), network, batch));
  }
  device::MemoryFigures figures;
  for (const auto& runner : runners) figures += runner->program.memory();
  return {{"resident_bytes", anonymous_bytes() - start},
          {"reported_weights", figures.weights},
          {"reported_total", figures.total()}};
}

Json run(int argc, char** argv) {
  Settings settings;
  settings.rounds = std::stoi(argument(argc, argv, "--rounds", "15"));
  const auto all = networks(argument(argc, argv, "--models-dir", CORELANE_SITE_PACKAGES));
  Json report{{"benchmark", "batch_forms"}, {"environment", environment()}};
  // Children first: this process must not have the engine's threads when it forks.
  for (const Network& network : all) {
    Json j{{"model", network.name}};
    const auto of = [&](Serving s) { return in_child([&] { return memory_of(network, s); }); };
    j["one_program"] = of(Serving::kOneProgram);
    j["one_for_each_size"] = of(Serving::kProgramForEach);
    j["one_for_size_8_alone"] = of(Serving::kProgramOfLargest);
    std::fprintf(stderr, "%s, memory for the sizes 1 to 8: %s\n", network.name.c_str(),
                 j.dump().c_str());
    report["memory"].push_back(std::move(j));
  }
  report["ratios"] = Json::array();
  for (const Network& network : all) report["ratios"].push_back(changing_size(network, settings));
  for (const Network& network : all)
    for (std::uint32_t batch = 1; batch <= kMost; ++batch)
      report["ratios"].push_back(one_size(network, batch, settings));
  return report;
}

}  // namespace
}  // namespace corelane::bench

int main(int argc, char** argv) {
  return corelane::bench::run_program("batch_forms_benchmark", argc, argv, corelane::bench::run);
}
