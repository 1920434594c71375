#include <array>
#include <cstdlib>
#include <thread>

#include "failing_new.h"
#include "rknn_api.h"
#include "round.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::allocation {
namespace {

constexpr int kThreads = 3;
constexpr int kCalls = 300;

/// A run: blocking (kind 0), or in the background.
bool run(rknn_context context, int kind, Tally& tally) {
  rknn_run_extend extend{};
  extend.non_block = kind == 0 ? 0 : 1;
  const int sent = exposed([&] { return rknn_run(context, &extend); });
  ++(sent == RKNN_SUCC ? tally.taken : tally.refused);
  if (sent != RKNN_SUCC) return false;
  const int ended = kind == 0 ? sent : exposed([&] { return rknn_wait(context, &extend); });
  ++tally.answered;
  return ended == RKNN_SUCC;
}

/// `ours`: the results are of this run; with ASYNC_MASK they are of the one before.
void call(rknn_context context, int i, bool ours, Tally& tally) {
  std::array<float, 4> x{}, y{};
  x.fill(static_cast<float>(i));
  rknn_input input{};
  input.buf = x.data();
  input.size = sizeof x;
  input.type = RKNN_TENSOR_FLOAT32;
  input.fmt = RKNN_TENSOR_NCHW;
  if (exposed([&] { return rknn_inputs_set(context, 1, &input); }) != RKNN_SUCC) return;
  if (!run(context, i % 3, tally)) return;
  rknn_output output{};
  output.want_float = 1;
  output.is_prealloc = i % 2 == 0 ? 1 : 0;
  output.buf = output.is_prealloc != 0 ? y.data() : nullptr;
  output.size = sizeof y;
  if (exposed([&] { return rknn_outputs_get(context, 1, &output, nullptr); }) != RKNN_SUCC) {
    tally.expect(output.is_prealloc != 0 || output.buf == nullptr, "a failure leaves no buffer");
    return;
  }
  for (int k = 0; k < 4 && ours; ++k)
    tally.expect(static_cast<float*>(output.buf)[k] == x[0], "a result is of this run");
  tally.expect(exposed([&] { return rknn_outputs_release(context, 1, &output); }) == RKNN_SUCC,
               "a buffer is released");
}

}  // namespace

void rknn_round(const Plan& plan, Tally& tally) {
  setenv("CORELANE_RKNN_INNER", plan.device.c_str(), 1);
  setenv("CORELANE_LOG", "off", 1);
  setenv("RKNN_LOG_LEVEL", "0", 1);
  std::string model = testing::relu_model({std::int64_t{1}, std::int64_t{4}});
  std::array<rknn_context, kThreads> contexts{};
  for (int t = 0; t < kThreads; ++t) {
    const std::uint32_t flags = t == 1 ? RKNN_FLAG_ASYNC_MASK : 0;
    tally.expect(rknn_init(&contexts[t], model.data(), static_cast<std::uint32_t>(model.size()),
                           flags, nullptr) == RKNN_SUCC,
                 "a context is made");
  }
  begin_failing(plan.share, plan.seed);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const Shielded test;
      for (int i = 0; i < kCalls; ++i) call(contexts[t], t == 1 ? i * 3 : i, t != 1, tally);
    });
  for (std::thread& thread : threads) thread.join();
  end_failing();
  for (rknn_context context : contexts) {
    // A context that could not allocate once works again.
    for (int kind = 0; kind < 2; ++kind)
      tally.expect(run(context, kind, tally), "a context works afterwards");
    tally.expect(rknn_destroy(context) == RKNN_SUCC, "a context is destroyed");
  }
}

}  // namespace corelane::allocation
