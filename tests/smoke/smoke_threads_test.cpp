#include <array>
#include <thread>

#include "corelane/device/device.h"
#include "process_figures.h"
#include "smoke_support.h"

namespace corelane {
namespace {

using namespace testing;

constexpr int kThreads = 8;

/// Runs `f(thread)` on eight threads and waits for them.
template <class F>
void on_eight_threads(F f) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(f, t);
  for (std::thread& t : threads) t.join();
}

TEST(SmokeThreads, EightThreadsOnThreeCoresGetTheirOwnResults) {
  const auto device = own_device();
  const Program program = load(affine_model(64, 2), on(device));
  std::array<int, kThreads> right{};
  on_eight_threads([&](int t) {
    Context context = program.new_context().value();
    std::vector<float> x(64, static_cast<float>(t));
    std::vector<float> y(64);
    std::vector<std::int8_t> narrow(64);
    if (!context.bind_input(0, in_view(x, Shape{64})).ok()) return;
    for (int i = 0; i < 200; ++i) {
      const bool converted = t % 2 == 1;
      const Status bound =
          converted ? context.bind_output(
                          0, MutableTensorView{narrow.data(), 64, DType::kI8, Shape{64}, {}, {}})
                    : context.bind_output(0, out_view(y, Shape{64}));
      x[0] = static_cast<float>((t + i) % 50);
      Status status;
      if (i % 3 == 0) {
        auto inference = context.submit();
        status = inference ? inference->wait() : inference.error();
      } else {
        status = context.run();
      }
      const float got = converted ? static_cast<float>(narrow[0]) : y[0];
      right[static_cast<std::size_t>(t)] +=
          bound.ok() && status.ok() && got == 2 * x[0] + 1 ? 1 : 0;
    }
  });
  for (const int n : right) EXPECT_EQ(n, 200);
  EXPECT_EQ(device->counters().completed, 1600U);
}

TEST(SmokeThreads, ASecondCallerOfOneContextIsRefusedNotUndefined) {
  const Program program = load(affine_model(4096, 2), on(own_device()));
  Context context = program.new_context().value();
  std::atomic<int> ok{0};
  std::atomic<int> busy{0};
  std::atomic<int> other{0};
  on_eight_threads([&](int t) {
    for (int i = 0; i < 50; ++i) {
      const Status status = t % 4 == 3 ? context.set_input_shapes({Shape{4096}}) : context.run();
      ++(status.ok() ? ok : status.code() == Code::kBusy ? busy : other);
      if (t % 4 == 2) {
        EXPECT_EQ(context.inputs().size(), 1U);
        static_cast<void>(context.record());
        static_cast<void>(context.memory());
      }
    }
  });
  EXPECT_GT(ok, 0);
  EXPECT_EQ(other, 0);
  EXPECT_EQ(ok + busy, 400);
}

TEST(SmokeThreads, ShapeSetsArePreparedOnceForAllThreads) {
  LoadOptions options = on(own_device());
  options.import.shape_sets = {{Shape{1, 4}}, {Shape{2, 4}}, {Shape{3, 4}}};
  const Program program = load(relu_model({"n", 4}), options);
  std::atomic<int> right{0};
  on_eight_threads([&](int t) {
    Context context = program.new_context().value();
    const std::int64_t n = 1 + t % 3;
    if (context.set_input_shapes({Shape{n, 4}}).ok() && context.run().ok() &&
        context.output(0).value().shape == Shape{n, 4}) {
      ++right;
    }
  });
  EXPECT_EQ(right, kThreads);
}

TEST(SmokeThreads, LoadingAndUnloadingLeavesFdsAndThreadsLevel) {
  const std::string model = affine_model(64, 2);
  const auto cycle = [&] {
    const Program program = load(model, on(own_device()));
    Context context = program.new_context().value();
    Context other = context.duplicate().value();
    Inference inference = context.submit().value();
    EXPECT_TRUE(inference.wait().ok());
    EXPECT_TRUE(other.run().ok());
  };
  for (int i = 0; i < 3; ++i) cycle();  // The engine's pools and the clock's thread.
  const ProcessFigures before = process_figures();
  for (int i = 0; i < 20; ++i) cycle();
  const ProcessFigures after = process_figures();
  EXPECT_EQ(after.fds, before.fds);
  // The engine keeps stream threads of models that overlapped for a moment; a leak would be 20.
  EXPECT_LE(after.threads, before.threads + 4);
}

}  // namespace
}  // namespace corelane
