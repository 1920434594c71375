/// OpenVINO called directly, on one operator over 16 floats: the rival of what calls cost.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <openvino/openvino.hpp>
#include <string>
#include <vector>

#include "corelane/runtime/program.h"
#include "harness.h"

namespace corelane::bench {

inline constexpr std::size_t kN = 16;

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

inline ov::CompiledModel compile(ov::Core& core, const std::string& text, int streams) {
  return core.compile_model(core.read_model(text, ov::Tensor()), "CPU", ov::num_streams(streams),
                            ov::inference_num_threads(streams), ov::hint::enable_cpu_pinning(false),
                            ov::hint::inference_precision(ov::element::f32));
}

inline Contender blocking(const std::string& name, std::shared_ptr<Rival> r) {
  return {name, [r](Duration block) { return run_for(block, 16, [&] { r->request.infer(); }); }};
}
inline Contender asynchronous(const std::string& name, std::shared_ptr<Rival> r) {
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
      r->request.set_callback(
          [this, req = &r->request](const std::exception_ptr&) { again(*req); });
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

/// Ratio against the faster of the rival's two settings; `control` is the second instance of it.
inline Json against_faster(const std::string& name, const Times& t, double target, bool at_most) {
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

/// Throughput with four in flight, which `ours` keeps for a block and counts, against pools of four
/// requests whose callbacks start them again.
inline Json against_pools(const std::string& name, const std::function<double(Duration)>& ours,
                          ov::CompiledModel& one, ov::CompiledModel& two,
                          const Settings& settings) {
  RivalPool p1(one), p1b(one), p2(two), p2b(two);
  const auto pooled = [](RivalPool& p) {
    return [&p](Duration block) { return static_cast<double>(p.run(block)); };
  };
  return against_faster(name,
                        measure({{"ours", ours},
                                 {"ov1", pooled(p1)},
                                 {"ov1'", pooled(p1b)},
                                 {"ov2", pooled(p2)},
                                 {"ov2'", pooled(p2b)}},
                                settings),
                        1.5, false);
}

}  // namespace corelane::bench
