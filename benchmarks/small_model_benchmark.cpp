// The cost of a call: one operator on 16 floats, ours against OpenVINO in its faster setting of 1
// and 2 streams. Targets of the foundation: blocking <= 1.3, submit + wait <= 0.7, pool of 4
// >= 1.5. ReLU is a network that the virtual NPU runs without the engine; Erf goes through it.
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <openvino/openvino.hpp>
#include <stdexcept>

#include "corelane/device/device.h"
#include "corelane/runtime/program.h"
#include "harness.h"
#include "tiny_model.h"

namespace corelane::bench {
namespace {

constexpr std::size_t kN = 16;

struct Tensors {
  alignas(64) float in[kN] = {-3, 2, -1, 0, 1, -2, 3, 4, -5, 6, -7, 8, 9, -10, 11, -12};
  alignas(64) float out[kN] = {};
};

/// Ours: one context over user memory.
struct Ours {
  Tensors t;
  Context context;
  explicit Ours(const Program& program) : context(take(program.new_context())) {
    const Shape shape{static_cast<std::int64_t>(kN)};
    check(context.bind_input(0, {t.in, sizeof(t.in), DType::kF32, shape, {}, {}}));
    check(context.bind_output(0, {t.out, sizeof(t.out), DType::kF32, shape, {}, {}}));
  }
};

struct Rival {
  Tensors t;
  ov::InferRequest request;
  explicit Rival(ov::CompiledModel& model) : request(model.create_infer_request()) {
    request.set_input_tensor(ov::Tensor(ov::element::f32, {kN}, t.in));
    request.set_output_tensor(ov::Tensor(ov::element::f32, {kN}, t.out));
  }
};

ov::CompiledModel compile(ov::Core& core, const std::string& text, int streams) {
  return core.compile_model(core.read_model(text, ov::Tensor()), "CPU", ov::num_streams(streams),
                            ov::inference_num_threads(streams), ov::hint::enable_cpu_pinning(false),
                            ov::hint::inference_precision(ov::element::f32));
}

Contender blocking(const std::string& name, std::shared_ptr<Rival> r) {
  return {name, [r](Duration block) { return run_for(block, 16, [&] { r->request.infer(); }); }};
}
Contender asynchronous(const std::string& name, std::shared_ptr<Rival> r) {
  return {name, [r](Duration block) {
            return run_for(block, 16, [&] {
              r->request.start_async();
              r->request.wait();
            });
          }};
}

/// A pool of 4 requests; each completion's callback starts it again until the block is over.
class RivalPool {
 public:
  explicit RivalPool(ov::CompiledModel& model) {
    for (int i = 0; i < 4; ++i) requests_.push_back(std::make_unique<Rival>(model));
    for (auto& r : requests_)
      r->request.set_callback([this, req = &r->request](std::exception_ptr) { again(*req); });
  }
  std::uint64_t run(Duration block) {
    calls_ = 0;
    running_ = 4;
    end_ = real_clock()->now() + block;
    for (auto& r : requests_) r->request.start_async();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return running_ == 0; });
    return calls_;
  }

 private:
  void again(ov::InferRequest& request) {
    calls_.fetch_add(1, std::memory_order_relaxed);
    if (real_clock()->now() < end_) {
      request.start_async();
      return;
    }
    std::lock_guard lock(mutex_);
    if (--running_ == 0) done_.notify_one();
  }
  std::vector<std::unique_ptr<Rival>> requests_;
  std::atomic<std::uint64_t> calls_{0};
  int running_ = 0;
  TimePoint end_;
  std::mutex mutex_;
  std::condition_variable done_;
};

/// The same with four contexts.
class OurPool {
 public:
  explicit OurPool(const Program& program) {
    for (int i = 0; i < 4; ++i) contexts_.push_back(std::make_unique<Ours>(program));
  }
  std::uint64_t run(Duration block) {
    calls_ = 0;
    running_ = 4;
    end_ = real_clock()->now() + block;
    for (auto& c : contexts_) start(*c);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return running_ == 0; });
    return calls_;
  }

 private:
  void start(Ours& ours) {
    auto inference = take(ours.context.submit());
    inference.on_done([this, &ours](const Status& s) {
      check(s);
      again(ours);
    });
  }
  void again(Ours& ours) {
    calls_.fetch_add(1, std::memory_order_relaxed);
    if (real_clock()->now() < end_) {
      start(ours);
      return;
    }
    std::lock_guard lock(mutex_);
    if (--running_ == 0) done_.notify_one();
  }
  std::vector<std::unique_ptr<Ours>> contexts_;
  std::atomic<std::uint64_t> calls_{0};
  int running_ = 0;
  TimePoint end_;
  std::mutex mutex_;
  std::condition_variable done_;
};

/// Ratio against the faster of the rival's two settings; `control` is the second instance of it.
Json against_faster(const std::string& name, const Times& t, double target, bool at_most) {
  // 0: ours, 1: one stream, 2: one stream again, 3: two streams, 4: two streams again.
  const bool one = median_of(t[1]) <= median_of(t[3]);
  const auto& rival = one ? t[1] : t[3];
  const auto& again = one ? t[2] : t[4];
  const auto r = at_most ? ratio_of(t[0], rival) : ratio_of(rival, t[0]);
  auto j = report_ratio(name, r, ratio_of(again, rival), target, at_most);
  j["rival_setting"] = one ? "1 stream" : "2 streams";
  j["ours_us"] = median_of(t[0]) * 1e6;
  j["rival_us"] = median_of(rival) * 1e6;
  return j;
}

void compare(const std::string& op, const Settings& settings, Json& report) {
  ov::Core core;
  const auto text = unary_model(op, kN);
  auto one = compile(core, text, 1);
  auto two = compile(core, text, 2);
  const auto program = take(Program::load(as_byte_span(text)));
  auto ours = std::make_shared<Ours>(program);
  auto a = std::make_shared<Rival>(one), b = std::make_shared<Rival>(one);
  auto c = std::make_shared<Rival>(two), d = std::make_shared<Rival>(two);
  check(ours->context.run());
  a->request.infer();
  if (!std::equal(ours->t.out, ours->t.out + kN, a->t.out)) fail("answers differ");

  report["device"] = program.device()->info().instance;
  auto& list = report["ratios"];
  const Contender run_ours{"ours", [&](Duration block) {
                             return run_for(block, 16, [&] { check(ours->context.run()); });
                           }};
  list.push_back(against_faster(op + ": blocking, ours / OpenVINO infer()",
                                measure({run_ours, blocking("ov1", a), blocking("ov1'", b),
                                         blocking("ov2", c), blocking("ov2'", d)},
                                        settings),
                                1.3, true));
  const Contender submit_ours{"ours", [&](Duration block) {
                                return run_for(block, 16, [&] {
                                  auto inference = take(ours->context.submit());
                                  check(inference.wait());
                                });
                              }};
  list.push_back(
      against_faster(op + ": submit + wait, ours / start_async + wait",
                     measure({submit_ours, asynchronous("ov1", a), asynchronous("ov1'", b),
                              asynchronous("ov2", c), asynchronous("ov2'", d)},
                             settings),
                     0.7, true));
  OurPool pool(program);
  RivalPool p1(one), p1b(one), p2(two), p2b(two);
  const auto pooled = [](auto& p) { return [&p](Duration block) { return p.run(block); }; };
  list.push_back(against_faster(op + ": pool of 4, throughput ours / OpenVINO",
                                measure({{"ours", pooled(pool)},
                                         {"ov1", pooled(p1)},
                                         {"ov1'", pooled(p1b)},
                                         {"ov2", pooled(p2)},
                                         {"ov2'", pooled(p2b)}},
                                        settings),
                                1.5, false));
}

Json run(int argc, char** argv) {
  Settings settings;
  settings.rounds = std::stoi(argument(argc, argv, "--rounds", "41"));
  Json report{{"benchmark", "small_model"}, {"environment", environment()}};
  report["ratios"] = Json::array();
  for (const char* op : {"Relu", "Erf"}) compare(op, settings, report);
  return report;
}

}  // namespace
}  // namespace corelane::bench

int main(int argc, char** argv) {
  return corelane::bench::run_program("small_model_benchmark", argc, argv, corelane::bench::run);
}
