// Sessions against OpenVINO. The cost of a call: Session::run and a bound run of a ReLU of 16
// floats against the runtime's blocking call and infer(). Real models: run_async from one thread on
// two cores against a queue of infer requests (what AsyncInferQueue is) with two streams; target
// <= 1.03 x its time. Answers are compared before any time is taken.
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <openvino/openvino.hpp>

#include "corelane/onnx/onnx_import.h"
#include "corelane/session/session.h"
#include "harness.h"
#include "model_list.h"
#include "static_network.h"
#include "tiny_model.h"

namespace corelane::bench {
namespace {

constexpr std::size_t kStreams = 2;

ov::CompiledModel compile(ov::Core& core, const std::shared_ptr<ov::Model>& network,
                          std::size_t streams) {
  return core.compile_model(network, "CPU", ov::num_streams(static_cast<int>(streams)),
                            ov::inference_num_threads(static_cast<int>(streams)),
                            ov::hint::enable_cpu_pinning(false),
                            ov::hint::inference_precision(ov::element::f32));
}

/// What AsyncInferQueue does: one thread copies inputs into the next idle request and starts it.
class RivalQueue {
 public:
  RivalQueue(ov::CompiledModel& model, std::size_t jobs) {
    for (std::size_t i = 0; i < jobs; ++i) {
      requests_.push_back(std::make_unique<ov::InferRequest>(model.create_infer_request()));
      ov::InferRequest* request = requests_.back().get();
      request->set_callback([this, request](const std::exception_ptr& error) {
        const std::lock_guard lock(mutex_);
        if (error) failed_ = true;
        idle_.push_back(request);
        changed_.notify_one();
      });
      idle_.push_back(request);
    }
  }
  void start(const std::vector<std::vector<float>>& inputs) {
    ov::InferRequest* request = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !idle_.empty(); });
      request = idle_.front();
      idle_.erase(idle_.begin());
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      std::memcpy(request->get_input_tensor(i).data<float>(), inputs[i].data(),
                  inputs[i].size() * sizeof(float));
    }
    request->start_async();
  }
  void wait_all() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return idle_.size() == requests_.size(); });
    if (failed_) fail("a request of the rival failed");
  }
  ov::InferRequest& last() { return *idle_.back(); }

 private:
  std::vector<std::unique_ptr<ov::InferRequest>> requests_;
  std::vector<ov::InferRequest*> idle_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool failed_ = false;
};

Feed feed_of(const RealModel& model, const std::vector<std::vector<float>>& inputs) {
  Feed feed;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::size_t bytes = inputs[i].size() * sizeof(float);
    feed.push_back({"", {inputs[i].data(), bytes, DType::kF32, model.shapes[i], {}, {}}, nullptr});
  }
  return feed;
}

/// Largest difference relative to the largest element.
double disagreement(const Outputs& ours, ov::InferRequest& rival) {
  double worst = 0, peak = 1e-9;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const ov::Tensor tensor = rival.get_output_tensor(i);
    if (tensor.get_element_type() != ov::element::f32) continue;
    if (ours[i].shape.elements() != tensor.get_size()) fail("output sizes differ");
    const auto* a = static_cast<const float*>(ours[i].data.get());
    const auto* b = tensor.data<float>();
    for (std::size_t k = 0; k < tensor.get_size(); ++k) {
      worst = std::max(worst, std::fabs(static_cast<double>(a[k]) - b[k]));
      peak = std::max(peak, std::fabs(static_cast<double>(b[k])));
    }
  }
  return worst / peak;
}

Session open_session(const RealModel& model, PlacementPolicy placement) {
  SessionOptions options;
  options.load.cache = false;
  options.print_perf = false;
  options.schedule = {0, 1};
  options.placement = placement;
  const auto described = take(import_onnx_file(model.path)).description;
  for (std::size_t i = 0; i < model.shapes.size(); ++i)
    options.load.import.input_shapes[described.inputs[i].desc.name] = model.shapes[i];
  return take(Session::create(model.path, options));
}

/// Runs until the engines of the session's program have been compared, which takes turns with these
/// runs; what comes after is measured.
void settle(Session& session, const Feed& feed) {
  run_for(std::chrono::seconds(8), 1, [&] { take(session.run(feed)); });
}

/// A block: submissions from this thread for about `block`, and all their results.
double submit_all(Session& session, const Feed& feed, Duration block) {
  std::atomic<std::uint64_t> failed{0};
  const double calls = run_for(block, 1, [&] {
    take(session.run_async(
        feed, [&](std::uint64_t, const Result<Outputs>& outputs) { failed += !outputs; }));
  });
  session.wait_callbacks();
  if (failed > 0) fail("a task failed");
  return calls;
}

Json one_model(ov::Core& core, const RealModel& model, const Settings& base) {
  const std::vector<std::vector<float>> inputs = make_inputs(model);
  Session session = open_session(model, PlacementPolicy::kFormula);
  Session free = open_session(model, PlacementPolicy::kLeastLoaded);
  const Feed feed = feed_of(model, inputs);
  for (Session* const one : {&session, &free}) settle(*one, feed);
  const auto network = read_static(core, model);
  auto compiled = compile(core, network, kStreams), again = compile(core, network, kStreams);
  RivalQueue rival(compiled, 2 * kStreams), control(again, 2 * kStreams);
  rival.start(inputs);
  rival.wait_all();
  Json out{{"model", model.name}};
  out["max_relative_difference"] = std::max(disagreement(take(session.run(feed)), rival.last()),
                                            disagreement(take(free.run(feed)), rival.last()));
  if (out["max_relative_difference"].get<double>() > 1e-3) fail(model.name + ": answers differ");

  const auto begin = real_clock()->now();
  take(session.run(feed));
  Settings settings = base;
  // A block holds many inferences, so that the last one's end weighs little.
  settings.block = std::max(base.block, (real_clock()->now() - begin) * 12);
  const auto queued = [&](RivalQueue& queue) {
    return [&](Duration block) {
      const double calls = run_for(block, 1, [&] { queue.start(inputs); });
      queue.wait_all();
      return calls;
    };
  };
  const auto t = measure({{"ours", [&](Duration b) { return submit_all(session, feed, b); }},
                          {"ov", queued(rival)},
                          {"ov'", queued(control)},
                          {"free", [&](Duration b) { return submit_all(free, feed, b); }}},
                         settings);
  const Ratio again_ratio = ratio_of(t[2], t[1]);
  out["schedule"] = report_ratio(model.name + ": run_async, schedule / infer requests",
                                 ratio_of(t[0], t[1]), again_ratio, 1.03, true);
  out["least_loaded"] = report_ratio(model.name + ": run_async, least loaded / infer requests",
                                     ratio_of(t[3], t[1]), again_ratio, 1.03, true);
  out["ours_ms"] = median_of(t[0]) * 1e3;
  out["openvino_ms"] = median_of(t[1]) * 1e3;
  return out;
}

/// A figure that has no target.
Json figure(const std::string& name, const Times& t, std::size_t ours, std::size_t rival,
            std::size_t control) {
  const Ratio r = ratio_of(t[ours], t[rival]), c = ratio_of(t[control], t[rival]);
  std::fprintf(stderr, "%-44s %.3f [%.3f, %.3f]  A/A %.3f; %.2f us / %.2f us\n", name.c_str(),
               r.median, r.low, r.high, c.median, median_of(t[ours]) * 1e6,
               median_of(t[rival]) * 1e6);
  return {{"name", name},
          {"ratio", r.median},
          {"low", r.low},
          {"high", r.high},
          {"control", c.median},
          {"control_low", c.low},
          {"control_high", c.high},
          {"ours_us", median_of(t[ours]) * 1e6},
          {"rival_us", median_of(t[rival]) * 1e6}};
}

/// The ReLU of 16 floats: the session's calls, the runtime's call, the engine's.
Json small_calls(ov::Core& core, Settings settings) {
  constexpr std::size_t n = 16;
  const auto text = relu_model(n);
  alignas(64) float in[n] = {-3, 2, -1, 0, 1, -2, 3, 4, -5, 6, -7, 8, 9, -10, 11, -12};
  alignas(64) float out[3][n] = {};
  const Shape shape{static_cast<std::int64_t>(n)};
  const TensorView x{in, sizeof(in), DType::kF32, shape, {}, {}};
  const auto y = [&](int i) {
    return MutableTensorView{out[i], sizeof(out[i]), DType::kF32, shape, {}, {}};
  };
  SessionOptions options;
  options.load.cache = false;
  options.print_perf = false;
  Session session = take(Session::create(as_byte_span(text), options));
  IoBinding binding = take(session.io_binding());
  check(binding.bind_input("x", x));
  check(binding.bind_output("y", y(0)));
  const auto program = take(Program::load(as_byte_span(text), options.load));
  std::vector<Context> contexts;
  for (int i = 1; i < 3; ++i) {
    contexts.push_back(take(program.new_context()));
    check(contexts.back().bind_input(0, x));
    check(contexts.back().bind_output(0, y(i)));
  }
  auto model = compile(core, core.read_model(text, ov::Tensor()), 1);
  std::vector<ov::InferRequest> requests{model.create_infer_request(),
                                         model.create_infer_request()};
  for (auto& r : requests) r.set_input_tensor(ov::Tensor(ov::element::f32, {n}, in));
  const Feed feed = {{"x", x, nullptr}};
  check(session.run(binding));
  const Outputs outputs = take(session.run(feed));
  check(contexts[0].run());
  requests[0].infer();
  const auto* rival = requests[0].get_output_tensor().data<float>();
  const auto differs = [&](const float* ours) { return !std::equal(ours, ours + n, rival); };
  if (differs(out[0]) || differs(out[1]) ||
      differs(reinterpret_cast<const float*>(outputs[0].data.get())))
    fail("answers differ");
  const auto repeat = [](auto f) { return [f](Duration block) { return run_for(block, 16, f); }; };
  const auto t = measure({{"run", repeat([&] { take(session.run(feed)); })},
                          {"bound", repeat([&] { check(session.run(binding)); })},
                          {"context", repeat([&] { check(contexts[0].run()); })},
                          {"context'", repeat([&] { check(contexts[1].run()); })},
                          {"ov", repeat([&] { requests[0].infer(); })},
                          {"ov'", repeat([&] { requests[1].infer(); })}},
                         settings);
  return Json::array({figure("Session::run / Context::run", t, 0, 2, 3),
                      figure("bound Session::run / Context::run", t, 1, 2, 3),
                      figure("Session::run / OpenVINO infer()", t, 0, 4, 5),
                      figure("bound Session::run / OpenVINO infer()", t, 1, 4, 5)});
}

Json run(int argc, char** argv) {
  Settings settings;
  settings.rounds = std::stoi(argument(argc, argv, "--rounds", "21"));
  settings.block = std::chrono::milliseconds(8);
  const auto only = argument(argc, argv, "--only", "");
  const auto models = real_models(argument(argc, argv, "--models-dir", CORELANE_SITE_PACKAGES));
  if (models.empty()) fail("no model is installed: run ./dev setup bench");
  ov::Core core;
  Json report{{"benchmark", "session"}, {"environment", environment()}};
  if (only.empty() || only == "calls") report["calls"] = small_calls(core, settings);
  auto& list = report["models"] = Json::array();
  for (const auto& model : models)
    if (only.empty() || model.name == only) list.push_back(one_model(core, model, settings));
  return report;
}

}  // namespace
}  // namespace corelane::bench

int main(int argc, char** argv) {
  return corelane::bench::run_program("session_benchmark", argc, argv, corelane::bench::run);
}
