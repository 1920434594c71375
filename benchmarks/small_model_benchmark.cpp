// The cost of a call: one operator on 16 floats, ours against OpenVINO in its faster setting of 1
// and 2 streams. Targets of the foundation: blocking <= 1.3, submit + wait <= 0.7, pool of 4
// >= 1.5. ReLU is a network that the virtual NPU runs without the engine; Erf goes through it.
#include <condition_variable>
#include <memory>
#include <mutex>

#include "corelane/device/device.h"
#include "openvino_rival.h"
#include "tiny_model.h"

namespace corelane::bench {
namespace {

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

void compare(const std::string& op, const Settings& settings, Json& report) {
  ov::Core core;
  const auto text = unary_model(op, kN);
  auto one = compile(core, text, 1);
  auto two = compile(core, text, 2);
  LoadOptions load;
  load.engine = "openvino";  // Calls are compared, not engines: the other one's last bits differ.
  const auto program = take(Program::load(as_byte_span(text), load));
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
  list.push_back(against_pools(
      op + ": pool of 4, throughput ours / OpenVINO",
      [&](Duration block) { return static_cast<double>(pool.run(block)); }, one, two, settings));
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
