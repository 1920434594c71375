#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "corelane/device/soonest_engine.h"
#include "drivers/virtual/common/heap_growth.h"
#include "drivers/virtual/ort/ort_program.h"
#include "drivers/virtual/ort/ort_test_programs.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::shared_ptr<OrtProgram> prepare_ort(const std::string& wish, const device::Image& image) {
  return std::static_pointer_cast<OrtProgram>(prepare_for(wish, image));
}

TEST(OrtPlain, BeginsPlainUntilItHasRunAFewTimesWhereNobodyAskedForIt) {
  const auto program = prepare_ort(std::string(device::kSoonestEngine),
                                   onnx_image(product_network(), product_constants()));
  ASSERT_NE(program, nullptr);
  const auto r = request(*program);
  std::vector<float> x = {1, 10};
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 2})).ok());
  for (std::uint32_t i = 0; i < kRunsBeforeOptimising; ++i) {
    EXPECT_TRUE(program->is_plain());
    ASSERT_TRUE(r->run(1).ok());
    EXPECT_THAT(floats_of(*r, 0), ElementsAre(41, 52, 63));
  }
  // A request that is made now does not wait for the optimised session; bindings do.
  ASSERT_TRUE(request(*program)->run(1).ok());
  ASSERT_TRUE(program->reserve(1, 1).ok());
  EXPECT_FALSE(program->is_plain());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_THAT(floats_of(*r, 0), ElementsAre(41, 52, 63));
}

TEST(OrtPlain, BeginsOptimisedWhereItIsNamedOrQuantized) {
  EXPECT_FALSE(prepare_ort("onnxruntime", onnx_image(relu_network()))->is_plain());
  EXPECT_FALSE(prepare_ort("", onnx_image(relu_network()))->is_plain());
  const std::string timed = device::faster_engine("onnxruntime");
  EXPECT_FALSE(prepare_ort(timed, onnx_image(relu_network()))->is_plain());
  constexpr std::int64_t kUint8 = 2;
  const std::string quantized = NetworkBuilder()
                                    .input("x", {1, 16})
                                    .floats("scale", {}, {0.5F})
                                    .constant("zero", {}, kUint8, std::string(1, '\x03'))
                                    .node("QuantizeLinear", {"x", "scale", "zero"}, {"q"})
                                    .node("DequantizeLinear", {"q", "scale", "zero"}, {"y"})
                                    .output("y", {1, 16})
                                    .bytes();
  EXPECT_FALSE(prepare_ort(std::string(device::kSoonestEngine), onnx_image(quantized))->is_plain());
}

TEST(OrtPlain, BeginsPlainWhereRecurrencesAloneReadDequantizedValues) {
  constexpr std::int64_t kUint8 = 2;
  const std::string hidden = NetworkBuilder::int_attribute("hidden_size", 1);
  const std::string network = NetworkBuilder()
                                  .input("x", {1, 1, 2}, kUint8)
                                  .floats("scale", {}, {0.5F})
                                  .floats("w", {1, 1, 2}, {1, 2})
                                  .floats("r", {1, 1, 1}, {3})
                                  .node("DequantizeLinear", {"x", "scale"}, {"d"})
                                  .node("RNN", {"d", "w", "r"}, {"y"}, "", {hidden})
                                  .output("y", {1, 1, 1, 1})
                                  .bytes();
  const auto program = prepare_ort(std::string(device::kSoonestEngine), onnx_image(network));
  ASSERT_NE(program, nullptr);
  EXPECT_TRUE(program->is_plain());
  const auto r = request(*program);
  std::vector<std::uint8_t> x = {1, 1};
  for (std::uint32_t i = 0; i <= kRunsBeforeOptimising; ++i) {
    ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 1, 2})).ok());
    ASSERT_TRUE(r->run(1).ok());
    EXPECT_THAT(floats_of(*r, 0), ElementsAre(::testing::FloatNear(std::tanh(1.5F), 1e-6F)));
    if (i == 0) ASSERT_TRUE(program->is_plain());
  }
}

TEST(OrtPlain, BeginsPlainWhereThePictureOfAConvolutionIsSmall) {
  const auto picture = [](std::int64_t batch, std::int64_t side) {
    return NetworkBuilder()
        .input("x", {batch, 1, side, side})
        .floats("w", {1, 1, 1, 1}, {2})
        .node("Conv", {"x", "w"}, {"y"})
        .output("y", {batch, 1, side, side})
        .bytes();
  };
  // The picture is made of a sound in the network.
  const auto sound = [](std::int64_t side) {
    return NetworkBuilder()
        .input("x", {1, side * side})
        .constant("shape", {4}, kOnnxInt64, longs({1, 1, side, side}))
        .node("Reshape", {"x", "shape"}, {"p"})
        .floats("w", {1, 1, 1, 1}, {2})
        .node("Conv", {"p", "w"}, {"y"})
        .output("y", {1, 1, side, side})
        .bytes();
  };
  for (const std::string& network : {picture(1, 4), picture(-1, 4), sound(4)}) {
    const auto program = prepare_ort(std::string(device::kSoonestEngine), onnx_image(network));
    ASSERT_NE(program, nullptr);
    EXPECT_TRUE(program->is_plain());
    const auto r = request(*program);
    std::vector<float> x(16, 1.5F);
    const bool flat = program->inputs()[0].shape.rank() == 2;
    const Shape shape = flat ? Shape{1, 16} : Shape{1, 1, 4, 4};
    ASSERT_TRUE(r->set_input(0, tensor_ref(x, shape)).ok());
    for (int run = 0; run < 6; ++run) {
      ASSERT_TRUE(r->run(1).ok());
      EXPECT_THAT(floats_of(*r, 0), Each(3.0F));
      if (run == 3) ASSERT_TRUE(program->reserve(1, 1).ok());
    }
    EXPECT_FALSE(program->is_plain());
  }
  for (const std::string& network : {picture(1, 1024), picture(64, 64), sound(300)}) {
    const auto program = prepare_ort(std::string(device::kSoonestEngine), onnx_image(network));
    ASSERT_NE(program, nullptr);
    EXPECT_FALSE(program->is_plain());
  }
}

/// A 1 x 1 convolution of three channels with 2 MiB of weights, for pictures of `dims`.
std::shared_ptr<OrtProgram> prepare_heavy(const std::vector<std::int64_t>& dims) {
  constexpr std::int64_t kOut = (1 << 21) / 12 + 1;
  constexpr std::size_t kBytes = kOut * 12;
  const std::string network = NetworkBuilder()
                                  .input("x", dims)
                                  .external("w", {kOut, 3, 1, 1}, kOnnxFloat, "corelane:constants",
                                            "0", std::to_string(kBytes))
                                  .node("Conv", {"x", "w"}, {"y"})
                                  .output("y", {dims[0], kOut, dims[2], dims[3]})
                                  .bytes();
  return prepare_ort(std::string(device::kSoonestEngine), onnx_image(network, ByteVector(kBytes)));
}

TEST(OrtPlain, BeginsPlainWhereAConvolutionHasManyWeightsForASmallPicture) {
  EXPECT_TRUE(prepare_heavy({1, 3, 256, 256})->is_plain());
  EXPECT_TRUE(prepare_heavy({-1, 3, 48, -1})->is_plain());
  EXPECT_FALSE(prepare_heavy({1, 3, 256, 257})->is_plain());
  EXPECT_FALSE(prepare_heavy({-1, 3, -1, -1})->is_plain());
}

TEST(OrtPlain, BeginsOptimisedWhereAConvolutionReadsALongSound) {
  const auto begins_plain = [](std::int64_t batch, std::int64_t length) {
    const std::string network = NetworkBuilder()
                                    .input("x", {batch, 1, length})
                                    .floats("w", {1, 1, 1}, {2})
                                    .node("Conv", {"x", "w"}, {"y"})
                                    .output("y", {batch, 1, length})
                                    .bytes();
    const auto program = prepare_ort(std::string(device::kSoonestEngine), onnx_image(network));
    return program != nullptr && program->is_plain();
  };
  EXPECT_TRUE(begins_plain(1, 1 << 16));
  EXPECT_TRUE(begins_plain(-1, 1 << 16));
  EXPECT_TRUE(begins_plain(-1, -1));
  EXPECT_FALSE(begins_plain(1, (1 << 16) + 1));
  EXPECT_FALSE(begins_plain(-1, (1 << 16) + 1));
  EXPECT_FALSE(begins_plain(-1, std::int64_t{1} << 40));
}

TEST(OrtPlain, BeginsPlainWhereARunComputesLittleForItsNodes) {
  const std::string network = NetworkBuilder()
                                  .input("x", {1, 1, 1024, 1024})
                                  .floats("w", {1, 1, 1, 1}, {2})
                                  .node("Conv", {"x", "w"}, {"y"})
                                  .output("y", {1, 1, 1024, 1024})
                                  .bytes();
  device::Image image = onnx_image(network);
  const auto begins_plain = [&](std::optional<std::uint64_t> steps) {
    image.steps = steps;
    const auto program = prepare_ort(std::string(device::kSoonestEngine), image);
    return program != nullptr && program->is_plain();
  };
  EXPECT_FALSE(begins_plain({}));
  EXPECT_TRUE(begins_plain(4'000'000));
  EXPECT_FALSE(begins_plain(4'000'001));
}

/// A network of which the engine knows the shape of the output, {first, 2, 1}, once it is
/// optimised: it does not follow a shape through Max.
device::Image late_shape_image(std::string& network, std::int64_t rows, std::int64_t first) {
  network = NetworkBuilder()
                .input("x", {-1, 6})
                .constant("rows", {1}, kOnnxInt64, longs({rows}))
                .constant("two", {1}, kOnnxInt64, longs({2}))
                .constant("three", {1}, kOnnxInt64, longs({3}))
                .node("Max", {"two", "two"}, {"columns"})
                .node("Concat", {"rows", "columns", "three"}, {"shape"}, "concat",
                      {NetworkBuilder::int_attribute("axis", 0)})
                .node("Reshape", {"x", "shape"}, {"r"})
                .floats("w", {3, 1}, {1, 2, 3})
                .node("MatMul", {"r", "w"}, {"y"})
                .output("y", {first, 2, 1})
                .bytes();
  device::Image image = onnx_image(network);
  TensorDesc y;
  y.name = "y";
  y.dtype = DType::kF32;
  y.shape = Shape{first, 2, 1};
  image.outputs = {y};
  return image;
}

/// Its program was given up for one of the other engine, which takes ten times as long to prepare.
TEST(OrtPlain, BeginsOptimisedWhereTheEngineKnowsAnOutputOnlyThen) {
  std::string network;
  const device::Image image = late_shape_image(network, 1, 1);
  const auto program = prepare_ort(std::string(device::kSoonestEngine), image);
  ASSERT_NE(program, nullptr);
  EXPECT_FALSE(program->is_plain());
  EXPECT_EQ(program->outputs()[0].shape, image.outputs[0].shape);
}

TEST(OrtPlain, BeginsPlainWhereTheSizesOfOutputsFollowFromTheInputs) {
  std::string network;
  device::Image image = late_shape_image(network, 1, 1);
  image.infer_outputs = [] { return std::vector<std::optional<Shape>>{Shape{1, 2, 1}}; };
  const auto program = prepare_ort(std::string(device::kSoonestEngine), image);
  ASSERT_NE(program, nullptr);
  EXPECT_TRUE(program->is_plain());
  EXPECT_EQ(program->outputs()[0].shape, (Shape{1, 2, 1}));
  const auto r = request(*program);
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  std::vector<float> y(2);
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 6})).ok());
  ASSERT_TRUE(r->set_output(0, tensor_ref(y, {1, 2, 1})).ok());
  for (std::uint32_t i = 0; i < kRunsBeforeOptimising + 2; ++i) {
    y = {0, 0};
    ASSERT_TRUE(r->run(1).ok());
    EXPECT_THAT(y, ElementsAre(14, 32));
    if (i == kRunsBeforeOptimising) ASSERT_TRUE(program->reserve(1, 1).ok());
  }
  EXPECT_FALSE(program->is_plain());
}

TEST(OrtPlain, InferredSizesThatTheEngineKnowsOtherwiseAreNotTaken) {
  for (const auto& inferred : {std::optional<Shape>(Shape{1, 2, 5}), std::optional<Shape>(Shape{2}),
                               std::optional<Shape>()}) {
    std::string network;
    device::Image image = late_shape_image(network, 1, 1);
    image.infer_outputs = [&] { return std::vector{inferred}; };
    const auto program = prepare_ort(std::string(device::kSoonestEngine), image);
    ASSERT_NE(program, nullptr);
    EXPECT_FALSE(program->is_plain());
    EXPECT_EQ(program->outputs()[0].shape, (Shape{1, 2, 1}));
  }
}

TEST(OrtPlain, BeginsPlainWhereAnOutputIsKnownAfterARunAnyway) {
  std::string network;
  const device::Image image = late_shape_image(network, 0, -1);
  const auto program = prepare_ort(std::string(device::kSoonestEngine), image);
  ASSERT_NE(program, nullptr);
  EXPECT_TRUE(program->is_plain());
  EXPECT_EQ(program->outputs()[0].shape, (Shape{Shape::kOpen, Shape::kOpen, 1}));
}

/// What the heap has grown by after runs that take 16 MiB within, for a result of open size. The
/// network has so many nodes that some runs pass before it is optimised.
std::size_t heap_of_runs(const std::string& wish) {
  constexpr std::int64_t kColumns = 1 << 18;
  constexpr int kNodes = 600;
  NetworkBuilder network;
  network.input("x", {-1, kColumns})
      .constant("first", {1}, kOnnxInt64, longs({0}))
      .node("Concat", {"x", "x", "x", "x"}, {"wide"}, "concat",
            {NetworkBuilder::int_attribute("axis", 1)})
      .node("Gather", {"wide", "first"}, {"0"}, "gather",
            {NetworkBuilder::int_attribute("axis", 1)});
  for (int i = 0; i < kNodes; ++i)
    network.node("Neg", {std::to_string(i)}, {i + 1 == kNodes ? "y" : std::to_string(i + 1)});
  const std::string bytes = network.output("y", {-1, 1}).bytes();
  std::vector<float> x(4 * kColumns, 2);
  const std::size_t before = heap_bytes();
  const auto program = prepare_ort(wish, onnx_image(bytes));
  const auto r = request(*program);
  EXPECT_TRUE(r->set_input(0, tensor_ref(x, {4, kColumns})).ok());
  for (int run = 0; run < 6; ++run) {
    if (run == 4) EXPECT_TRUE(program->reserve(1, 1).ok());
    EXPECT_TRUE(r->run(1).ok());
  }
  EXPECT_FALSE(program->is_plain());
  EXPECT_THAT(floats_of(*r, 0), Each(2.0F));
  return heap_bytes() - before;
}

/// Weights that kernels pack are handed over as values; the engine copied all others.
TEST(OrtPlain, CopiesNoConstantsOfAnyType) {
  if (heap_bytes() == 0) GTEST_SKIP() << "a sanitizer has a heap of its own";
  constexpr std::int64_t kOnnxInt32 = 6;
  constexpr std::int64_t kMany = std::int64_t{1} << 20;
  ByteVector constants(static_cast<std::size_t>(kMany) * sizeof(std::int32_t), std::byte{5});
  const std::string size = std::to_string(constants.size());
  const std::string network =
      NetworkBuilder()
          .input("x", {1}, kOnnxInt32)
          .external("w", {kMany}, kOnnxInt32, "corelane:constants", "0", size)
          .node("Add", {"x", "w"}, {"y"})
          .output("y", {kMany}, kOnnxInt32)
          .bytes();
  for (const std::string_view wish : {device::kSoonestEngine, std::string_view("onnxruntime")}) {
    const auto program = prepare_ort(std::string(wish), onnx_image(network, constants));
    ASSERT_NE(program, nullptr);
    EXPECT_LT(program->memory().code, constants.size() / 4) << wish;
    const auto r = request(*program);
    std::vector<std::int32_t> x = {2};
    ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1})).ok());
    ASSERT_TRUE(r->run(1).ok());
    const auto y = r->output(0);
    ASSERT_TRUE(y) << y.error().to_string();
    const auto* first = static_cast<const std::int32_t*>(y->data);
    EXPECT_EQ(std::count(first, first + kMany, 0x05050507), kMany);
  }
}

TEST(OrtPlain, ItsMemoryGoesBackWhenTheOptimisedSessionTakesOver) {
  if (heap_bytes() == 0) GTEST_SKIP() << "a sanitizer has a heap of its own";
  const std::size_t one_session = heap_of_runs("onnxruntime");
  EXPECT_LT(heap_of_runs(std::string(device::kSoonestEngine)), one_session + (8 << 20));
}

TEST(OrtPlain, ThreadsRunOnWhileItIsOptimised) {
  const auto program = prepare_ort(std::string(device::kSoonestEngine),
                                   onnx_image(product_network(), product_constants()));
  ASSERT_NE(program, nullptr);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto r = request(*program);
      const auto value = static_cast<float>(t);
      std::vector<float> x = {value, 1};
      if (!r->set_input(0, tensor_ref(x, {1, 2})).ok()) ++wrong;
      bool last = false;
      // As often as it takes, and once more on the optimised session.
      for (int i = 0; i < 100 || !last; ++i) {
        last = !program->is_plain();
        if (!r->run(1).ok() || floats_of(*r, 0)[0] != value + 4) ++wrong;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu::ort
