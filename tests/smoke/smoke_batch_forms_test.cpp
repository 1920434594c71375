// Programs with a batch range on the virtual NPU: every form computes the same, and the constants
// lie there once where the budget says so.
#include <gtest/gtest.h>

#include <cmath>

#include "smoke_support.h"

namespace corelane {
namespace {

using testing::floats_of;
using testing::in_view;
using testing::kOnnxFloat;
using testing::kOnnxInt64;
using testing::kTolerance;
using testing::OnnxBuilder;

constexpr std::int64_t kWidth = 256;
constexpr std::size_t kConstants = 3 * kWidth * kWidth * sizeof(float);

/// Three dense layers for one sample of [16, 16], which a Reshape makes a row.
std::string dense_model() {
  OnnxBuilder model;
  model.input("x", {1, 16, 16}).output("y", {1, kWidth});
  model.constant<std::int64_t>("row", {2}, kOnnxInt64, {1, -1})
      .node("Reshape", {"x", "row"}, {"h0"});
  std::vector<float> weights(static_cast<std::size_t>(kWidth * kWidth));
  for (int layer = 0; layer < 3; ++layer) {
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i] = std::sin(static_cast<float>(i * 7 + static_cast<std::size_t>(layer))) / 16;
    const std::string n = std::to_string(layer);
    model.constant<float>("w" + n, {kWidth, kWidth}, kOnnxFloat, weights)
        .node("MatMul", {"h" + n, "w" + n}, {"m" + n})
        .node("Tanh", {"m" + n}, {layer == 2 ? "y" : "h" + std::to_string(layer + 1)});
  }
  return model.build("dense");
}

Program load_dense(const LoadOptions& options) {
  CompileOptions compile;
  compile.import = options.import;
  auto bytes = compile_bytes(as_byte_span(dense_model()), compile);
  EXPECT_TRUE(bytes) << bytes.error().to_string();
  auto program = Program::load(*bytes, options);
  EXPECT_TRUE(program) << program.error().to_string();
  return program ? *program : Program();
}

std::vector<float> samples(std::int64_t batch) {
  std::vector<float> x(static_cast<std::size_t>(batch * kWidth));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<float>(i));
  return x;
}

std::vector<float> run(Context& context, std::int64_t batch) {
  const std::vector<float> x = samples(batch);
  EXPECT_TRUE(context.bind_input(0, in_view(x, Shape{batch, 16, 16})).ok());
  const Status status = context.run();
  EXPECT_TRUE(status.ok()) << status.to_string();
  const auto y = context.output(0);
  EXPECT_TRUE(y) << y.error().to_string();
  if (!y) return {};
  EXPECT_EQ(y->shape, (Shape{batch, kWidth}));
  return floats_of(*y);
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], kTolerance) << i;
}

TEST(SmokeBatchForms, EveryFormComputesWhatAProgramOfOneSizeDoes) {
  LoadOptions options = testing::on(testing::own_device());
  LoadOptions ranged = options;
  ranged.import.batch_range = BatchRange{1, 8};
  const Program program = load_dense(ranged);
  ASSERT_EQ(program.description().batch_range, (BatchRange{1, 8}));
  Context context = program.new_context().value();
  const std::vector<float> one = run(context, 1);
  for (const std::int64_t batch : {1, 3, 8}) {
    const std::vector<float> open = run(context, batch);
    ASSERT_TRUE(program.make_batch_form(static_cast<std::uint32_t>(batch)).ok());
    const std::vector<float> single = run(context, batch);
    options.import.batch = static_cast<std::uint32_t>(batch);
    const Program fixed = load_dense(options);
    Context of_fixed = fixed.new_context().value();
    const std::vector<float> expected = run(of_fixed, batch);
    expect_near(open, expected);
    EXPECT_EQ(single, expected) << "the same form of the engine";
    expect_near({open.begin(), open.begin() + kWidth}, one);
  }
  EXPECT_EQ(program.forms().size(), 4U);
}

TEST(SmokeBatchForms, MemoryCountsTheConstantsOnceWhereTheBudgetSaysSo) {
  LoadOptions options = testing::on(testing::own_device());
  options.import.batch_range = BatchRange{1, 8};
  options.replicate_limit = 0;
  const Program once = load_dense(options);
  Context context = once.new_context().value();
  run(context, 4);
  [[maybe_unused]] const std::size_t one_size = once.memory().total();
  for (int round = 0; round < 10; ++round)
    for (const std::int64_t batch : {1, 4, 8}) run(context, batch);
  EXPECT_EQ(once.make_batch_form(4).code(), Code::kOutOfMemory);
  ASSERT_EQ(once.forms().size(), 1U);
  EXPECT_GE(once.memory().weights, kConstants);
  EXPECT_LE(once.memory().weights, 2 * kConstants + kConstants / 10) << "as read, and packed";
#if !defined(SMOKE_SANITIZED)
  EXPECT_GT(once.memory().total(), one_size) << "what the engine keeps for each size";
#endif

  // Room for two more copies: two forms, each for all three cores.
  options.replicate_limit = 2 * kConstants + 4096;  // And what else is constant.
  const Program some = load_dense(options);
  ASSERT_TRUE(some.make_batch_form(1).ok());
  ASSERT_TRUE(some.make_batch_form(8).ok());
  EXPECT_EQ(some.make_batch_form(4).code(), Code::kOutOfMemory);
  std::size_t weights = 0;
  for (const ProgramForm& form : some.forms()) {
    EXPECT_GT(form.memory.weights, 0U);
    weights += form.memory.weights;
  }
  EXPECT_GE(weights + 64, kConstants) << "each form counts a third of what they share";
  EXPECT_EQ(weights, some.memory().weights);
}

TEST(SmokeBatchForms, RequestsOfManySizesEndWhileFormsAreMade) {
  LoadOptions options = testing::on(testing::own_device());
  options.import.batch_range = BatchRange{1, 8};
  const Program program = load_dense(options);
  std::vector<std::vector<float>> expected(9);
  {
    Context context = program.new_context().value();
    for (std::int64_t batch = 1; batch <= 8; ++batch)
      expected[static_cast<std::size_t>(batch)] = run(context, batch);
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      Context context = program.new_context().value();
      for (int i = 0; i < 120; ++i) {
        const std::int64_t batch = 1 + (i * 5 + t) % 8;
        expect_near(run(context, batch), expected[static_cast<std::size_t>(batch)]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t batch = 1; batch <= 8; ++batch)
    EXPECT_TRUE(program.make_batch_form(batch).ok()) << "each has occurred, and fits the budget";
  EXPECT_EQ(program.forms().size(), 9U);
}

}  // namespace
}  // namespace corelane
