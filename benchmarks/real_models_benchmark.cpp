// Real models from pinned packages: one core against OpenVINO with one thread, and all cores
// against its THROUGHPUT hint. Targets of the foundation: one core <= 1.03 x the time, all cores
// >= 0.97 x the throughput. Answers are compared before any time is taken.
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <openvino/openvino.hpp>
#include <stdexcept>
#include <thread>

#include "corelane/device/device.h"
#include "corelane/onnx/onnx_import.h"
#include "corelane/runtime/program.h"
#include "harness.h"
#include "model_list.h"
#include "static_network.h"

namespace corelane::bench {
namespace {

ov::CompiledModel compile(ov::Core& core, const RealModel& model, bool throughput) {
  const auto network = read_static(core, model);
  const auto f32 = ov::hint::inference_precision(ov::element::f32);
  const auto pin = ov::hint::enable_cpu_pinning(false);
  if (throughput) {
    return core.compile_model(network, "CPU", f32, pin,
                              ov::hint::performance_mode(ov::hint::PerformanceMode::THROUGHPUT));
  }
  return core.compile_model(network, "CPU", f32, pin, ov::num_streams(1),
                            ov::inference_num_threads(1));
}

ov::InferRequest request_of(ov::CompiledModel& compiled, const RealModel& model,
                            std::vector<std::vector<float>>& inputs) {
  auto request = compiled.create_infer_request();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ov::Shape shape;
    for (const auto d : model.shapes[i].dims()) shape.push_back(static_cast<std::size_t>(d));
    request.set_input_tensor(i, ov::Tensor(ov::element::f32, shape, inputs[i].data()));
  }
  return request;
}

Context context_of(const Program& program, const RealModel& model,
                   std::vector<std::vector<float>>& inputs) {
  auto context = take(program.new_context());
  check(context.set_input_shapes(model.shapes));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check(context.bind_input(i, {inputs[i].data(),
                                 inputs[i].size() * sizeof(float),
                                 DType::kF32,
                                 model.shapes[i],
                                 {},
                                 {}}));
  }
  return context;
}

/// Largest difference relative to the largest element; both sides run first.
double disagreement(Context& ours, ov::InferRequest& rival) {
  check(ours.run());
  rival.infer();
  double worst = 0, peak = 1e-9;
  for (std::size_t i = 0; i < ours.outputs().size(); ++i) {
    const auto view = take(ours.output(i));
    const auto tensor = rival.get_output_tensor(i);
    if (tensor.get_element_type() != ov::element::f32) continue;
    if (view.shape.elements() != tensor.get_size()) fail("output sizes differ");
    const auto* a = static_cast<const float*>(view.data);
    const auto* b = tensor.data<float>();
    for (std::size_t k = 0; k < tensor.get_size(); ++k) {
      worst = std::max(worst, std::fabs(static_cast<double>(a[k]) - b[k]));
      peak = std::max(peak, std::fabs(static_cast<double>(b[k])));
    }
  }
  return worst / peak;
}

/// `callers` threads run as fast as they can for a block. The sum of what each did per second of
/// its own, as calls of the whole: the callers do not end together, and what is left over while the
/// last one ends says nothing of the throughput.
template <class Run>
double many(std::size_t callers, Duration block, Run run) {
  using Seconds = std::chrono::duration<double>;
  const auto begin = real_clock()->now();
  std::vector<double> rates(callers);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < callers; ++i) {
    threads.emplace_back([&, i] {
      const auto own_begin = real_clock()->now();
      const auto calls = run_for(block, 1, [&] { run(i); });
      rates[i] = calls / Seconds(real_clock()->now() - own_begin).count();
    });
  }
  threads.clear();
  return std::reduce(rates.begin(), rates.end()) * Seconds(real_clock()->now() - begin).count();
}

struct Sides {
  std::vector<std::vector<float>> inputs;
  std::vector<Context> ours;
  std::vector<ov::InferRequest> rival, again;
};

Contender many_rivals(const std::string& name, std::vector<ov::InferRequest>& requests) {
  return {name, [&requests](Duration block) {
            return many(requests.size(), block, [&](std::size_t i) { requests[i].infer(); });
          }};
}

Json one_model(ov::Core& core, const RealModel& model, const Settings& base,
               std::size_t replicate_limit, std::size_t our_callers) {
  Sides s;
  s.inputs = make_inputs(model);
  LoadOptions options;
  options.cache = false;
  options.replicate_limit = replicate_limit;
  // Both sides know the shapes when they compile.
  const auto described = take(import_onnx_file(model.path)).description;
  for (std::size_t i = 0; i < model.shapes.size(); ++i)
    options.import.input_shapes[described.inputs[i].desc.name] = model.shapes[i];
  const auto program = take(Program::load(model.path, options));
  const auto cores = program.device()->info().cores.size();
  auto single = compile(core, model, false);
  auto single_again = compile(core, model, false);
  auto context = context_of(program, model, s.inputs);
  auto request = request_of(single, model, s.inputs);
  auto request_again = request_of(single_again, model, s.inputs);
  Json out{{"model", model.name}};
  out["max_relative_difference"] = disagreement(context, request);
  if (out["max_relative_difference"].get<double>() > 1e-3) fail(model.name + ": answers differ");

  Settings settings = base;
  const auto t =
      measure({{"ours", [&](Duration b) { return run_for(b, 1, [&] { check(context.run()); }); }},
               {"ov", [&](Duration b) { return run_for(b, 1, [&] { request.infer(); }); }},
               {"ov'", [&](Duration b) { return run_for(b, 1, [&] { request_again.infer(); }); }}},
              settings);
  out["one_core"] = report_ratio(model.name + ": one core / 1 thread", ratio_of(t[0], t[1]),
                                 ratio_of(t[2], t[1]), 1.03, true);
  out["ours_ms"] = median_of(t[0]) * 1e3;
  out["openvino_ms"] = median_of(t[1]) * 1e3;

  auto wide = compile(core, model, true);
  auto wide_again = compile(core, model, true);
  const auto callers =
      std::max<std::size_t>(wide.get_property(ov::optimal_number_of_infer_requests), 2);
  for (std::size_t i = 0; i < callers; ++i) {
    s.rival.push_back(request_of(wide, model, s.inputs));
    s.again.push_back(request_of(wide_again, model, s.inputs));
  }
  // More cores than processors share them by turns, which costs; --callers shows how much.
  const auto ours = our_callers == 0 ? cores : our_callers;
  for (std::size_t i = 0; i < ours; ++i) s.ours.push_back(context_of(program, model, s.inputs));
  out["callers"] = ours;
  // A block holds many inferences of each caller, so that the last one's end weighs little.
  settings.block =
      std::max(base.block, Duration(static_cast<std::int64_t>(median_of(t[1]) * 24e9)));
  const auto w = measure(
      {{"ours",
        [&](Duration b) { return many(ours, b, [&](std::size_t i) { check(s.ours[i].run()); }); }},
       many_rivals("ov", s.rival),
       many_rivals("ov'", s.again)},
      settings);
  out["all_cores"] = report_ratio(model.name + ": all cores, throughput / THROUGHPUT hint",
                                  ratio_of(w[1], w[0]), ratio_of(w[1], w[2]), 0.97, false);
  return out;
}

Json run(int argc, char** argv) {
  Settings settings;
  settings.rounds = std::stoi(argument(argc, argv, "--rounds", "21"));
  settings.block = std::chrono::milliseconds(8);
  const auto models = real_models(argument(argc, argv, "--models-dir", CORELANE_SITE_PACKAGES));
  if (models.empty()) fail("no model is installed: run ./dev setup bench");
  const auto limit = static_cast<std::size_t>(std::stoull(
      argument(argc, argv, "--replicate-limit", std::to_string(LoadOptions{}.replicate_limit))));
  const auto callers = std::stoull(argument(argc, argv, "--callers", "0"));
  const auto only = argument(argc, argv, "--only", "");
  ov::Core core;
  Json report{{"benchmark", "real_models"}, {"environment", environment()}};
  auto& list = report["models"] = Json::array();
  for (const auto& model : models) {
    if (!only.empty() && model.name != only) continue;
    try {
      list.push_back(one_model(core, model, settings, limit, callers));
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s: %s\n", model.name.c_str(), e.what());
      list.push_back({{"model", model.name}, {"error", e.what()}});
    }
  }
  return report;
}

}  // namespace
}  // namespace corelane::bench

int main(int argc, char** argv) {
  return corelane::bench::run_program("real_models_benchmark", argc, argv, corelane::bench::run);
}
