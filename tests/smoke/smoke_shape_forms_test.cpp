// Programs with open dimensions on the virtual NPU: shapes that come back get static forms while
// many threads run, and every answer is right.
#include <cmath>
#include <cstdlib>

#include "smoke_support.h"

namespace corelane {
namespace {

using testing::kOnnxFloat;
using testing::kTolerance;
using testing::load;
using testing::on;
using testing::OnnxBuilder;
using testing::own_device;

constexpr std::int64_t kRowWidth = 16;
constexpr std::int64_t kMostRows = 12;
constexpr int kRuns = 4000;  ///< Of each thread.

/// x [1, ?, 16] -> three dense layers.
std::string open_dense_model() {
  OnnxBuilder model;
  model.input("x", {1, "rows", kRowWidth}).output("y", {1, "rows", kRowWidth});
  std::vector<float> weights(static_cast<std::size_t>(kRowWidth * kRowWidth));
  for (int layer = 0; layer < 3; ++layer) {
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i] = std::sin(static_cast<float>(i * 7 + static_cast<std::size_t>(layer))) / 4;
    const std::string n = std::to_string(layer);
    model.constant<float>("w" + n, {kRowWidth, kRowWidth}, kOnnxFloat, weights)
        .node("MatMul", {layer == 0 ? "x" : "h" + n, "w" + n}, {"m" + n})
        .node("Tanh", {"m" + n}, {layer == 2 ? "y" : "h" + std::to_string(layer + 1)});
  }
  return model.build("dense");
}

std::size_t elements(std::int64_t rows) { return static_cast<std::size_t>(rows * kRowWidth); }

/// The answer for `rows` in bound memory; empty where a call failed.
std::vector<float> run(Context& context, std::vector<float>& x, std::int64_t rows) {
  const Shape shape{1, rows, kRowWidth};
  std::vector<float> y(elements(rows));
  const std::size_t bytes = y.size() * sizeof(float);
  if (!context.bind_input(0, {x.data(), bytes, DType::kF32, shape, {}, {}}).ok()) return {};
  if (!context.bind_output(0, {y.data(), bytes, DType::kF32, shape, {}, {}}).ok()) return {};
  const Status status = context.run();
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_TRUE(context.unbind_output(0).ok());
  return status.ok() ? y : std::vector<float>();
}

bool near(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, [](float x, float y) { return std::fabs(x - y) <= kTolerance; });
}

/// With forms, whatever the tests' environment says.
Program load_with_forms(const LoadOptions& options) {
  ::setenv("CORELANE_STATIC_FORMS", "1", 1);
  ::setenv("CORELANE_TIME_ENGINES", "1", 1);
  Program program = load(open_dense_model(), options);
  ::setenv("CORELANE_STATIC_FORMS", "0", 1);
  ::setenv("CORELANE_TIME_ENGINES", "0", 1);
  return program;
}

/// Of 1 to kMostRows rows, by a program without forms.
std::vector<std::vector<float>> expected_answers(std::vector<float>& x) {
  LoadOptions options = on(own_device());
  options.static_forms = false;
  options.time_engines = false;
  const Program open = load(open_dense_model(), options);
  Context context = open.new_context().value();
  std::vector<std::vector<float>> answers(1);
  for (std::int64_t rows = 1; rows <= kMostRows; ++rows) answers.push_back(run(context, x, rows));
  EXPECT_EQ(open.forms().size(), 1U);
  return answers;
}

TEST(SmokeShapeForms, ThreadsRunOnWhileFormsComeAndGo) {
  std::vector<float> x(elements(kMostRows));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<float>(i));
  const std::vector<std::vector<float>> expected = expected_answers(x);
  for (const char* const engine : {"", "openvino"}) {
    LoadOptions options = on(own_device());
    options.engine = engine;
    const Program program = load_with_forms(options);
    std::atomic<int> wrong{0};
    std::atomic<int> ran{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        Context context = program.new_context().value();
        std::vector<float> own = x;
        for (int i = 0; i < kRuns; ++i) {
          // The rows in use move on, so that forms leave again.
          const std::int64_t rows = 1 + (i / 400 + (i + t) % 3) % kMostRows;
          if (!near(run(context, own, rows), expected[static_cast<std::size_t>(rows)])) ++wrong;
          ++ran;
        }
      });
    }
    for (auto& thread : threads) thread.join();
    program.wait_forms();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(ran, 8 * kRuns);
    EXPECT_LE(program.forms().size(), 9U);
    device::MemoryFigures sum;
    for (const ProgramForm& form : program.forms()) sum += form.memory;
    EXPECT_GE(program.memory().total(), sum.total());
  }
}

TEST(SmokeShapeForms, ADeadlineThatPassesLeavesTheFormToOthers) {
  const auto fault = std::make_shared<testing::ArmedFault>();
  LoadOptions options = on(own_device(fault));
  options.engine = "openvino";
  const Program program = load_with_forms(options);
  Context context = program.new_context().value();
  std::vector<float> x(elements(4), 0.5F);
  const std::vector<float> expected = run(context, x, 4);
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(near(run(context, x, 4), expected));
  program.wait_forms();
  EXPECT_TRUE(near(run(context, x, 4), expected));
  fault->arm(device::Fault::kHang);
  RunOptions limited;
  limited.timeout = std::chrono::milliseconds(50);
  EXPECT_EQ(context.run(limited).code(), Code::kTimeout);
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(near(run(context, x, 4), expected));
}

}  // namespace
}  // namespace corelane
