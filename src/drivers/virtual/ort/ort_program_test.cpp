#include "drivers/virtual/ort/ort_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "corelane/base/log.h"
#include "corelane/device/soonest_engine.h"
#include "drivers/virtual/common/onnx_node.h"
#include "drivers/virtual/ort/ort_test_programs.h"
#include "drivers/virtual/test_networks.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string string_attribute(std::string_view name, std::string_view text) {
  std::string a;
  append_bytes_field(a, 1, name);
  append_bytes_field(a, 4, text);
  append_varint_field(a, 20, 3);
  return a;
}

std::string open_network() {
  return NetworkBuilder()
      .input("x", {-1, 2})
      .node("Add", {"x", "x"}, {"y"}, "twice")
      .output("y", {-1, 2})
      .bytes();
}

TEST(OrtProgram, RunsOnUserMemoryWithoutACopy) {
  const auto program = prepare(onnx_image(relu_network()));
  ASSERT_TRUE(program);
  std::vector<float> x(16);
  std::iota(x.begin(), x.end(), -8.0F);
  std::vector<float> y(16, -1.0F);
  const auto r = request(*program);
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 16})).ok());
  ASSERT_TRUE(r->set_output(0, tensor_ref(y, {1, 16})).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_EQ(y[0], 0.0F);
  EXPECT_EQ(y[15], 7.0F);
  EXPECT_EQ(r->output(0)->data, y.data());
  x[15] = 9.0F;  // The same memory, read again.
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_EQ(y[15], 9.0F);
}

/// The memory of an output that is an input was left as it was (issue 17).
TEST(OrtProgram, AnOutputThatIsAnInputIsCopied) {
  for (const std::int64_t rows : {2, -1}) {
    const std::string network = NetworkBuilder()
                                    .input("x", {rows, 2})
                                    .node("Add", {"x", "x"}, {"y"}, "twice")
                                    .output("y", {rows, 2})
                                    .output("x", {rows, 2})
                                    .bytes();
    const auto program = prepare(onnx_image(network));
    ASSERT_NE(program, nullptr);
    const auto r = request(*program);
    std::vector<float> x = {1, 2, 3, 4};
    std::vector<float> same(4, -1);
    ASSERT_TRUE(r->set_input(0, tensor_ref(x, {2, 2})).ok());
    ASSERT_TRUE(r->set_output(1, tensor_ref(same, {2, 2})).ok());
    ASSERT_TRUE(r->run(1).ok());
    EXPECT_THAT(floats_of(*r, 0), ElementsAre(2, 4, 6, 8));
    EXPECT_THAT(same, ElementsAre(1, 2, 3, 4));
    ASSERT_TRUE(r->set_output(1, {}).ok());
    ASSERT_TRUE(r->run(1).ok());
    EXPECT_THAT(floats_of(*r, 1), ElementsAre(1, 2, 3, 4));
    EXPECT_NE(r->output(1)->data, x.data());
  }
}

TEST(OrtProgram, EmptyRefReturnsToTheInternalBuffers) {
  const auto program = prepare(onnx_image(relu_network()));
  const auto r = request(*program);
  std::vector<float> x(16, 3.0F);
  std::vector<float> y(16, -1.0F);
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 16})).ok());
  ASSERT_TRUE(r->set_output(0, tensor_ref(y, {1, 16})).ok());
  ASSERT_TRUE(r->set_output(0, {}).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_EQ(y[0], -1.0F);
  EXPECT_EQ(floats_of(*r, 0)[0], 3.0F);
  ASSERT_TRUE(r->set_input(0, {}).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_EQ(floats_of(*r, 0)[0], 0.0F);
}

TEST(OrtProgram, ConstantsAreReadFromTheSegment) {
  const auto program = prepare(onnx_image(product_network(), product_constants()));
  for (const std::size_t width : {1U, 2U}) {
    const auto r = request(*program, width);
    std::vector<float> x = {1, 10};
    ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 2})).ok());
    ASSERT_TRUE(r->run(3).ok());
    EXPECT_THAT(floats_of(*r, 0), ElementsAre(41, 52, 63));
  }
  EXPECT_GE(program->memory().weights, 24U);
}

constexpr std::int64_t kWide = 1024;

/// y = x w with 4 MiB of weights, which the engine packs.
std::string wide_product() {
  return NetworkBuilder()
      .input("x", {1, kWide})
      .external("w", {kWide, kWide}, kOnnxFloat, "corelane:constants", "0",
                std::to_string(kWide * kWide * 4))
      .node("MatMul", {"x", "w"}, {"y"}, "product")
      .output("y", {1, kWide})
      .bytes();
}

ByteVector wide_constants() {
  const std::vector<float> ones(static_cast<std::size_t>(kWide * kWide), 1.0F);
  ByteVector bytes(ones.size() * sizeof(float));
  std::memcpy(bytes.data(), ones.data(), bytes.size());
  return bytes;
}

/// Each width of a job has a session of its own; their packed weights are the same.
TEST(OrtProgram, SessionsShareWhatTheEnginePacksOfTheWeights) {
  constexpr std::size_t kPackedBytes = kWide * kWide * 4;
  const auto program = prepare(onnx_image(wide_product(), wide_constants()));
  std::vector<float> x(static_cast<std::size_t>(kWide), 1.0F);
  std::size_t first = 0;
  for (const std::size_t width : {1U, 2U}) {
    const auto r = request(*program, width);
    ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, kWide})).ok());
    ASSERT_TRUE(r->run(3).ok());
    EXPECT_EQ(floats_of(*r, 0), std::vector<float>(x.size(), static_cast<float>(kWide)));
    if (width == 1) first = program->memory().code;
  }
  if (first < kPackedBytes) GTEST_SKIP() << "this build has a heap of its own";
  EXPECT_LT(program->memory().code - first, kPackedBytes / 4);
}

TEST(OrtProgram, OpenOutputsHaveTheSizeThatComesOut) {
  const auto program = prepare(onnx_image(open_network()));
  const auto r = request(*program);
  EXPECT_EQ(r->output(0).error().code(), Code::kWrongState);
  EXPECT_EQ(r->run(1).code(), Code::kWrongState);  // Nothing is bound to the open input.
  for (const std::int64_t rows : {3, 1, 0, 4}) {
    std::vector<float> x(static_cast<std::size_t>(rows) * 2, 1.5F);
    x.reserve(1);  // Memory of no rows has an address, too.
    ASSERT_TRUE(r->set_input(0, tensor_ref(x, {rows, 2})).ok());
    const Status ran = r->run(1);
    ASSERT_TRUE(ran.ok()) << ran.to_string();
    EXPECT_EQ(r->output(0)->shape, Shape({rows, 2}));
    EXPECT_EQ(floats_of(*r, 0), std::vector<float>(x.size(), 3.0F));
  }
  ASSERT_TRUE(r->set_input(0, {}).ok());
  EXPECT_EQ(r->run(1).code(), Code::kWrongState);
}

/// A run is given the tensors of the runs before it, where those were alike.
TEST(OrtProgram, OpenOutputsFollowTheValuesAfterEqualRuns) {
  const std::string network = NetworkBuilder()
                                  .input("x", {4})
                                  .node("NonZero", {"x"}, {"places"}, "places")
                                  .node("Add", {"x", "x"}, {"y"}, "twice")
                                  .output("places", {1, -1}, kOnnxInt64)
                                  .output("y", {-1})
                                  .bytes();
  for (const bool bound : {false, true}) {
    const auto program = prepare(onnx_image(network));
    const auto r = request(*program);
    std::vector<float> x = {1, 0, 3, 0};
    std::vector<std::int64_t> places(4);
    ASSERT_TRUE(r->set_input(0, tensor_ref(x, {4})).ok());
    if (bound) ASSERT_TRUE(r->set_output(0, tensor_ref(places, {1, 4})).ok());
    const std::vector<std::pair<std::vector<float>, std::vector<std::int64_t>>> steps = {
        {{5, 0, 7, 0}, {0, 2}},
        {{0, 0, 7, 8}, {2, 3}},
        {{0, 0, 0, 0}, {}},
        {{1, 2, 3, 4}, {0, 1, 2, 3}},
        {{0, 9, 0, 9}, {1, 3}}};
    for (const auto& [values, expected] : steps) {
      for (int i = 0; i < 6; ++i) {
        std::copy(values.begin(), values.end(), x.begin());
        x[3] += static_cast<float>(values[3] > 0 ? i : 0);
        const Status ran = r->run(1);
        ASSERT_TRUE(ran.ok()) << ran.to_string();
        const auto out = r->output(0);
        ASSERT_TRUE(out);
        ASSERT_EQ(out->shape, Shape({1, static_cast<std::int64_t>(expected.size())}));
        const auto* data = static_cast<const std::int64_t*>(out->data);
        EXPECT_EQ(std::vector<std::int64_t>(data, data + expected.size()), expected);
        EXPECT_THAT(floats_of(*r, 1), ElementsAre(2 * x[0], 2 * x[1], 2 * x[2], 2 * x[3]));
      }
    }
  }
}

TEST(OrtProgram, AFailureAfterEqualRunsNamesItsNodeAndTheNextRunIsRight) {
  const std::string network = NetworkBuilder()
                                  .input("x", {-1})
                                  .input("i", {-1}, kOnnxInt64)
                                  .node("Gather", {"x", "i"}, {"y"}, "pick")
                                  .output("y", {-1})
                                  .bytes();
  const auto program = prepare(onnx_image(network));
  const auto r = request(*program);
  std::vector<float> x = {1, 2, 3};
  std::vector<std::int64_t> i = {0, 2};
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {3})).ok());
  ASSERT_TRUE(r->set_input(1, tensor_ref(i, {2})).ok());
  for (int round = 0; round < 2; ++round) {
    for (int run = 0; run < 6; ++run) {
      ASSERT_TRUE(r->run(1).ok());
      EXPECT_THAT(floats_of(*r, 0), ElementsAre(1, 3));
    }
    i[0] = 9;
    const Status failed = r->run(1);
    EXPECT_EQ(failed.code(), Code::kEngineFailed);
    EXPECT_EQ(failed.detail(Detail::kNode), "pick");
    i[0] = 0;
  }
}

TEST(OrtProgram, AnOpenOutputBeyondTheBoundMemoryWritesNothing) {
  const auto program = prepare(onnx_image(open_network()));
  const auto r = request(*program);
  std::vector<float> x(8, 1.0F);
  std::vector<float> y(4, -1.0F);
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {4, 2})).ok());
  ASSERT_TRUE(r->set_output(0, tensor_ref(y, {2, 2})).ok());
  EXPECT_EQ(r->run(1).code(), Code::kShapeMismatch);
  EXPECT_EQ(y, std::vector<float>(4, -1.0F));
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {2, 2})).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_EQ(y, std::vector<float>(4, 2.0F));
}

/// The run that fails comes after equal ones, so that the next would write to its tensors. Another
/// request frees memory before it, so that the engine gives it other tensors than the run before.
TEST(OrtProgram, AnOpenOutputBeyondItsMemoryLeavesTheOthersRight) {
  const std::string network = NetworkBuilder()
                                  .input("x", {-1})
                                  .node("Relu", {"x"}, {"y"})
                                  .node("Add", {"x", "x"}, {"z"})
                                  .output("y", {-1})
                                  .output("z", {-1})
                                  .bytes();
  for (int equal_runs = 0; equal_runs < 6; ++equal_runs) {
    const auto program = prepare(onnx_image(network));
    const auto other = request(*program);
    const auto r = request(*program);
    std::vector<float> x(1000, 1.0F);
    std::vector<float> y(1000);
    ASSERT_TRUE(other->set_input(0, tensor_ref(x, {1000})).ok());
    ASSERT_TRUE(other->run(1).ok());
    ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1000})).ok());
    ASSERT_TRUE(r->set_output(0, tensor_ref(y, {1000})).ok());
    for (int run = 0; run < equal_runs; ++run) ASSERT_TRUE(r->run(1).ok());
    ASSERT_TRUE(other->set_input(0, tensor_ref(x, {1})).ok());
    ASSERT_TRUE(other->run(1).ok());
    device::TensorRef small = tensor_ref(y, {4});
    small.size = 4 * sizeof(float);
    ASSERT_TRUE(r->set_output(0, small).ok());
    EXPECT_FALSE(r->run(1).ok());
    ASSERT_TRUE(r->set_output(0, tensor_ref(y, {1000})).ok());
    for (int run = 2; run < 8; ++run) {
      std::ranges::fill(x, static_cast<float>(run));
      ASSERT_TRUE(r->run(1).ok());
      EXPECT_EQ(y, x) << equal_runs;
      EXPECT_EQ(floats_of(*r, 1), std::vector<float>(1000, static_cast<float>(2 * run)))
          << equal_runs;
    }
  }
}

TEST(OrtProgram, InputShapesOfTheOptionsFixTheOutputs) {
  device::PrepareOptions options;
  options.input_shapes = {Shape{5, 2}};
  const auto program = prepare(onnx_image(open_network()), options);
  EXPECT_EQ(program->inputs()[0].shape, Shape({5, 2}));
  EXPECT_EQ(program->outputs()[0].shape, Shape({5, 2}));
}

TEST(OrtProgram, ExposedValuesFollowTheOutputs) {
  const std::string bytes = NetworkBuilder()
                                .input("x", {2})
                                .node("Neg", {"x"}, {"inner"})
                                .node("Abs", {"inner"}, {"y"})
                                .output("y", {2})
                                .bytes();
  device::PrepareOptions options;
  options.exposed_values = {"inner"};
  const auto program = prepare(onnx_image(bytes), options);
  ASSERT_EQ(program->outputs().size(), 2U);
  EXPECT_EQ(program->outputs()[1].name, "inner");
  const auto r = request(*program);
  std::vector<float> x = {1, -2};
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {2})).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_THAT(floats_of(*r, 0), ElementsAre(1, 2));
  EXPECT_THAT(floats_of(*r, 1), ElementsAre(-1, 2));
}

/// y = x[i], which fails for an index outside.
std::string pick_network() {
  return NetworkBuilder()
      .input("x", {3})
      .input("i", {1}, kOnnxInt64)
      .node("Gather", {"x", "i"}, {"y"}, "pick")
      .output("y", {1})
      .bytes();
}

TEST(OrtProgram, AnIndexOutsideFailsTheRunNamingTheNode) {
  const std::int64_t nine = 9;
  const auto program = prepare(onnx_image(pick_network()));
  const auto r = request(*program);
  std::vector<float> x = {1, 2, 3};
  std::vector<std::int64_t> i = {nine};
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {3})).ok());
  ASSERT_TRUE(r->set_input(1, tensor_ref(i, {1})).ok());
  const Status failed = r->run(1);
  EXPECT_EQ(failed.code(), Code::kEngineFailed);
  EXPECT_EQ(failed.detail(Detail::kNode), "pick");
  i[0] = 2;
  EXPECT_TRUE(r->run(1).ok());
  EXPECT_THAT(floats_of(*r, 0), ElementsAre(3));
}

/// An error of the engine comes back as a status, so its line is of level info.
TEST(OrtProgram, WhatTheEngineLogsIsALineOfTheLibrarysLog) {
  const auto program = prepare(onnx_image(pick_network()));
  const auto r = request(*program);
  std::vector<float> x = {1, 2, 3};
  std::vector<std::int64_t> i = {9};
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {3})).ok());
  ASSERT_TRUE(r->set_input(1, tensor_ref(i, {1})).ok());
  std::vector<std::string> lines;
  const log::Level before = log::level();
  log::set_level(log::Level::kInfo);
  log::set_callback([&](log::Level level, std::string_view, std::string_view text) {
    if (level == log::Level::kInfo) lines.emplace_back(text);
  });
  const Status failed = r->run(1);
  log::set_callback({});
  log::set_level(before);
  EXPECT_FALSE(failed.ok());
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("ONNX Runtime ("), HasSubstr("pick"))));
}

/// The engine's optimiser made one pair of the two, whose results were not on the second's grid.
TEST(OrtProgram, TwoPairsOfQuantizationGiveNumbersOfTheSecondGrid) {
  constexpr std::int64_t kInt8 = 3;
  const std::string network = NetworkBuilder()
                                  .input("x", {1, 4})
                                  .floats("s1", {}, {0.3F})
                                  .constant("z1", {}, kInt8, std::string(1, '\xfd'))
                                  .floats("s2", {}, {0.7F})
                                  .constant("z2", {}, kInt8, std::string(1, '\x0b'))
                                  .node("QuantizeLinear", {"x", "s1", "z1"}, {"q1"})
                                  .node("DequantizeLinear", {"q1", "s1", "z1"}, {"d1"})
                                  .node("QuantizeLinear", {"d1", "s2", "z2"}, {"q2"})
                                  .node("DequantizeLinear", {"q2", "s2", "z2"}, {"y"})
                                  .output("y", {1, 4})
                                  .bytes();
  const auto program = prepare(onnx_image(network));
  ASSERT_TRUE(program);
  std::vector<float> x = {-37.2F, -36, -34.8F, 12.1F};
  const auto r = request(*program);
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 4})).ok());
  ASSERT_TRUE(r->run(1).ok());
  const std::vector<float> y = floats_of(*r, 0);
  ASSERT_EQ(y.size(), x.size());
  const float steps[] = {-53, -51, -50, 17};
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_FLOAT_EQ(y[i], 0.7F * steps[i]) << i;
}

TEST(OrtProgram, RequestsRunAtTheSameTime) {
  const auto program = prepare(onnx_image(product_network(), product_constants()));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto r = request(*program, t % 2 == 0 ? 1 : 2);
      std::vector<float> x = {static_cast<float>(t), 1};
      ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 2})).ok());
      for (int i = 0; i < 200; ++i) {
        ASSERT_TRUE(r->run(1).ok());
        ASSERT_EQ(floats_of(*r, 0)[0], static_cast<float>(t + 4));
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

std::string cast_network(DType from, DType to, std::uint64_t opset = 25) {
  return NetworkBuilder()
      .input("x", {5}, onnx_type_of(from))
      .node("Cast", {"x"}, {"y"}, "cast", {NetworkBuilder::int_attribute("to", onnx_type_of(to))})
      .output("y", {5}, onnx_type_of(to))
      .bytes(opset, opset > 27 ? 14 : 12);
}

/// 0, 1, 2, 3 and -2 cast to `type` and back.
std::vector<float> there_and_back(DType type) {
  const auto to = prepare(onnx_image(cast_network(DType::kF32, type)));
  const auto back = prepare(onnx_image(cast_network(type, DType::kF32)));
  if (to == nullptr || back == nullptr) return {};
  EXPECT_EQ(to->outputs()[0].dtype, type);
  EXPECT_EQ(back->inputs()[0].dtype, type);
  std::vector<float> x = {0, 1, 2, 3, -2};
  const auto first = request(*to);
  EXPECT_TRUE(first->set_input(0, tensor_ref(x, {5})).ok());
  EXPECT_TRUE(first->run(1).ok());
  const auto between = first->output(0);
  EXPECT_TRUE(between) << between.error().to_string();
  if (!between) return {};
  EXPECT_EQ(between->size, dtype_bytes(type, 5));
  const auto second = request(*back);
  EXPECT_TRUE(second->set_input(0, *between).ok());
  EXPECT_TRUE(second->run(1).ok());
  return floats_of(*second, 0);
}

TEST(OrtProgram, BindsTheTypesThatNoConversionReads) {
  using enum DType;
  for (const DType type : {kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ})
    EXPECT_THAT(there_and_back(type), ElementsAre(0, 1, 2, 3, -2)) << dtype_name(type);
  EXPECT_THAT(there_and_back(kI4), ElementsAre(0, 1, 2, 3, -2));
  EXPECT_THAT(there_and_back(kI2), ElementsAre(0, 1, -2, -1, -2));
  EXPECT_THAT(there_and_back(kU2), ElementsAre(0, 1, 2, 3, 2));
  const auto powers = there_and_back(kF8E8M0);
  ASSERT_EQ(powers.size(), 5U);
  EXPECT_EQ(powers[1], 1.0F);
  EXPECT_EQ(powers[2], 2.0F);
}

TEST(OrtProgram, RefusesFloatsOfFourBitsWhichTheEngineDoesNotCompute) {
  const auto program = try_prepare(onnx_image(cast_network(DType::kF32, DType::kF4E2M1)));
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), Code::kUnsupportedModel);
}

TEST(OrtProgram, TakesNetworksOfLaterReleasesOfOnnx) {
  for (const std::uint64_t opset : {26, 27, 28})
    EXPECT_TRUE(prepare(onnx_image(cast_network(DType::kF32, DType::kU2, opset)))) << opset;
  EXPECT_FALSE(try_prepare(onnx_image(cast_network(DType::kF32, DType::kU2, 29))));
  // Opset 28 says what a shift beyond the width gives, and ONNX Runtime gives something else.
  const std::string shift =
      NetworkBuilder()
          .input("x", {1}, 2)
          .node("BitShift", {"x", "x"}, {"y"}, "shift", {string_attribute("direction", "LEFT")})
          .output("y", {1}, 2)
          .bytes(28, 14);
  EXPECT_FALSE(try_prepare(onnx_image(shift)));
  // A remainder of floats by the rule of integers: ONNX Runtime would fail when it runs.
  const std::string rest = NetworkBuilder()
                               .input("x", {1})
                               .node("Mod", {"x", "x"}, {"y"}, "rest")
                               .output("y", {1})
                               .bytes(28, 14);
  EXPECT_FALSE(try_prepare(onnx_image(rest)));
}

/// A Loop of x + 1, for as long as nobody ends it: 2^40 times.
std::string endless_network() {
  constexpr std::int64_t kBool = 9;
  const std::string body = NetworkBuilder()
                               .input("i", {}, kOnnxInt64)
                               .input("go", {}, kBool)
                               .input("v", {1})
                               .floats("one", {1}, {1})
                               .node("Identity", {"go"}, {"on"})
                               .node("Add", {"v", "one"}, {"w"})
                               .output("on", {}, kBool)
                               .output("w", {1})
                               .graph_attribute("body");
  const std::int64_t often = std::int64_t{1} << 40;
  return NetworkBuilder()
      .input("x", {1})
      .constant("often", {}, kOnnxInt64, {reinterpret_cast<const char*>(&often), sizeof(often)})
      .node("Loop", {"often", "", "x"}, {"y"}, "loop", {body})
      .output("y", {1})
      .bytes();
}

/// y = x * w in a branch of an If, whose Constant node has w in the image's constants.
TEST(OrtProgram, TakesConstantsOfNodesInsideGraphs) {
  const auto branch = [](const char* name, const char* offset) {
    std::string value;
    append_bytes_field(value, 1, "value");
    append_bytes_field(value, 5,
                       NetworkBuilder::external_tensor("w", {2, 3}, kOnnxFloat,
                                                       "corelane:constants", offset, "24"));
    append_varint_field(value, 20, 4);
    const std::string own = std::string("w") + offset;
    const std::string out = std::string("y") + offset;
    return NetworkBuilder()
        .node("Constant", {}, {own}, "constant", {value})
        .node("MatMul", {"x", own}, {out})
        .output(out, {1, 3})
        .graph_attribute(name);
  };
  constexpr std::int64_t kBool = 9;
  const std::string network =
      NetworkBuilder()
          .input("x", {1, 2})
          .input("c", {}, kBool)
          .node("If", {"c"}, {"y"}, "if", {branch("then_branch", "0"), branch("else_branch", "64")})
          .output("y", {1, 3})
          .bytes();
  const auto program = prepare(onnx_image(network, product_constants()));
  ASSERT_NE(program, nullptr);
  const auto r = request(*program);
  std::vector<float> x = {1, 1};
  std::vector<std::uint8_t> c = {0};
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 2})).ok());
  ASSERT_TRUE(r->set_input(1, {c.data(), 1, Shape{}, nullptr}).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_THAT(floats_of(*r, 0), ElementsAre(5, 7, 9));
}

TEST(OrtProgram, AnAbandonedRunEndsEarlyAndTheNextOneBegins) {
  const auto program = prepare(onnx_image(endless_network()));
  ASSERT_NE(program, nullptr);
  const auto r = request(*program);
  std::vector<float> x = {0};
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1})).ok());
  for (int round = 0; round < 2; ++round) {
    std::atomic<bool> ended{false};
    std::thread run([&] {
      EXPECT_FALSE(r->run(1).ok());
      ended = true;
    });
    while (!ended) {
      r->abandon();
      std::this_thread::yield();
    }
    run.join();
  }
}

TEST(OrtProgram, RefusesAnUnknownOperatorByNode) {
  const std::string bytes = NetworkBuilder()
                                .input("x", {2})
                                .node("NoSuchThing", {"x"}, {"y"}, "odd")
                                .output("y", {2})
                                .bytes();
  const auto program = try_prepare(onnx_image(bytes));
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), Code::kUnsupportedModel);
  EXPECT_THAT(program.error().message(), HasSubstr("NoSuchThing"));
}

TEST(OrtProgram, RefusesWhatOnlyTheFirstEngineCanDo) {
  for (const auto precision : {device::Precision::kF16, device::Precision::kBF16}) {
    device::PrepareOptions options;
    options.precision = precision;
    const auto refused = try_prepare(onnx_image(relu_network()), options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::kUnsupported);
    EXPECT_THAT(refused.error().message(), HasSubstr("needs the engine openvino"));
  }
}

TEST(OrtProgram, RecurrenceWithoutSamplesIsRefusedAndTheNextRunIsRight) {
  const std::string network = NetworkBuilder()
                                  .input("x", {2, -1, 1})
                                  .floats("w", {1, 3, 1}, {1, 1, 1})
                                  .floats("r", {1, 3, 1}, {1, 1, 1})
                                  .node("GRU", {"x", "w", "r"}, {"all", "y"}, "steps",
                                        {NetworkBuilder::int_attribute("hidden_size", 1)})
                                  .output("y", {1, -1, 1})
                                  .bytes();
  const auto program = prepare_for("onnxruntime", onnx_image(network));
  ASSERT_NE(program, nullptr);
  const auto r = request(*program);
  std::vector<float> x{0, 0};
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {2, 0, 1})).ok());
  const Status refused = r->run(1);
  EXPECT_EQ(refused.code(), Code::kUnsupported);
  EXPECT_THAT(refused.to_string(), HasSubstr("steps (GRU)"));
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {2, 1, 1})).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_EQ(floats_of(*r, 0).size(), 1U);
}

/// Each ended the process (issue 18).
TEST(OrtProgram, EmptyInputsThatTheEngineCannotTakeAreRefusedByNode) {
  const auto run_on = [](const std::string& network, std::vector<Shape> shapes) {
    const auto program = prepare(onnx_image(network));
    if (program == nullptr) return Status();
    const auto r = request(*program);
    std::vector<float> memory(16);
    for (std::size_t i = 0; i < shapes.size(); ++i)
      EXPECT_TRUE(r->set_input(i, tensor_ref(memory, std::move(shapes[i]))).ok());
    return r->run(1);
  };
  const Status heads = run_on(NetworkBuilder()
                                  .input("q", {1, -1, 2, 2})
                                  .node("Attention", {"q", "q", "q"}, {"y"}, "heads")
                                  .output("y", {1, -1, 2, 2})
                                  .bytes(23, 10),
                              {Shape{1, 0, 2, 2}});
  EXPECT_EQ(heads.code(), Code::kUnsupported);
  EXPECT_THAT(heads.to_string(), HasSubstr("node heads (Attention)"));
  const std::string volumes = NetworkBuilder()
                                  .input("x", {1, 1, -1, 1, 1})
                                  .floats("w", {1, 1, 2, 1, 1}, {1, 1})
                                  .node("ConvTranspose", {"x", "w"}, {"y"}, "up")
                                  .output("y", {1, 1, -1, 1, 1})
                                  .bytes();
  EXPECT_THAT(run_on(volumes, {Shape{1, 1, 0, 1, 1}}).to_string(),
              HasSubstr("input 'x' has shape [1, 1, 0, 1, 1], and node up (ConvTranspose)"));
  EXPECT_TRUE(run_on(volumes, {Shape{1, 1, 2, 1, 1}}).ok());
}

/// The second run failed: the output's batch was fixed.
TEST(OrtProgram, AWrongBatchThatAnOutputDeclaresIsNotBelieved) {
  const auto program = prepare(onnx_image(
      NetworkBuilder().input("x", {-1, 2}).node("Relu", {"x"}, {"y"}).output("y", {1, 2}).bytes()));
  ASSERT_NE(program, nullptr);
  EXPECT_EQ(program->outputs()[0].shape, (Shape{Shape::kOpen, 2}));
  const auto r = request(*program);
  std::vector<float> x{1, -2, 3, -4};
  for (const std::int64_t rows : {1, 2}) {
    ASSERT_TRUE(r->set_input(0, tensor_ref(x, {rows, 2})).ok());
    const Status ran = r->run(1);
    ASSERT_TRUE(ran.ok()) << ran.to_string();
    EXPECT_EQ(r->output(0)->shape, (Shape{rows, 2}));
  }
}

TEST(OrtProgram, SlicesWithoutElementsHaveNoUniqueOnes) {
  const auto program = prepare(onnx_image(
      NetworkBuilder()
          .input("x", {2, -1})
          .node("Unique", {"x"}, {"y"}, "unlike", {NetworkBuilder::int_attribute("axis", 0)})
          .output("y", {-1, -1})
          .bytes()));
  ASSERT_NE(program, nullptr);
  const auto r = request(*program);
  std::vector<float> x{1, 1};
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {2, 0})).ok());
  EXPECT_THAT(r->run(1).to_string(), HasSubstr("node unlike (Unique)"));
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {2, 1})).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_EQ(floats_of(*r, 0).size(), 1U);
}

/// Frames of x [1, 8, 1], whose length `op` makes of "length"; "": it is that.
std::string frames_network(NetworkBuilder network, const std::string& op) {
  constexpr std::int64_t kInt64 = 7;
  const std::int64_t step = 2;
  network.input("x", {1, 8, 1})
      .constant("step", {}, kInt64, {reinterpret_cast<const char*>(&step), sizeof(step)});
  std::vector<std::string> attributes;
  if (op == "Cast") attributes = {make_integer_attribute("to", kInt64)};
  if (!op.empty()) network.node(op, {"length"}, {"made"}, "", attributes);
  return network.node("STFT", {"x", "step", "", op.empty() ? "length" : "made"}, {"y"}, "frames")
      .output("y", {1, -1, -1, 2})
      .bytes();
}

TEST(OrtProgram, AFrameLengthOfZeroIsRefused) {
  constexpr std::int64_t kInt64 = 7;
  const std::int64_t zero = 0;
  for (const char* op : {"", "Identity"}) {
    const auto constant = try_prepare(onnx_image(frames_network(
        NetworkBuilder().constant("length", {}, kInt64,
                                  {reinterpret_cast<const char*>(&zero), sizeof(zero)}),
        op)));
    ASSERT_FALSE(constant) << op;
    EXPECT_THAT(constant.error().to_string(), HasSubstr("node frames (STFT)"));
  }
  const auto runs_with = [](auto length, std::int64_t type, const char* op) {
    const auto program =
        prepare(onnx_image(frames_network(NetworkBuilder().input("length", {}, type), op)));
    const auto r = request(*program);
    std::vector<float> x(8, 1.0F);
    std::vector<decltype(length)> lengths{length};
    EXPECT_TRUE(r->set_input(1, tensor_ref(x, {1, 8, 1})).ok());
    EXPECT_TRUE(r->set_input(0, tensor_ref(lengths, {})).ok());
    return r->run(1).to_string();
  };
  const auto refused = HasSubstr("input 'length' is 0, and node frames (STFT)");
  EXPECT_THAT(runs_with(std::int64_t{0}, kInt64, ""), refused);
  EXPECT_EQ(runs_with(std::int64_t{4}, kInt64, ""), "ok");
  EXPECT_THAT(runs_with(0.9F, kOnnxFloat, "Cast"), refused);
  EXPECT_EQ(runs_with(4.5F, kOnnxFloat, "Cast"), "ok");
}

TEST(OrtProgram, MemoryForAnOutputIsNoSmallerThanItIs) {
  const auto program = prepare(onnx_image(
      NetworkBuilder().input("x", {4}).node("Neg", {"x"}, {"y"}).output("y", {4}).bytes()));
  ASSERT_NE(program, nullptr);
  const auto r = request(*program);
  std::vector<float> y(4, 7.0F);
  device::TensorRef half = tensor_ref(y, {2});
  half.size = 2 * sizeof(float);
  EXPECT_EQ(r->set_output(0, half).code(), Code::kShapeMismatch);
  EXPECT_TRUE(r->set_output(0, tensor_ref(y, {4})).ok());
}

TEST(OrtProgram, SizesThatAnOutputDeclaresAreTheEnginesToTell) {
  constexpr std::int64_t kInt64 = 7;
  const auto program = prepare(onnx_image(NetworkBuilder()
                                              .input("x", {1, 4})
                                              .node("NonZero", {"x"}, {"y"})
                                              .output("y", {2, 4}, kInt64)
                                              .bytes()));
  ASSERT_NE(program, nullptr);
  EXPECT_EQ(program->outputs()[0].shape, (Shape{2, Shape::kOpen}));
  const auto r = request(*program);
  std::vector<float> x{1, 0, 0, 3};
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 4})).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_EQ(r->output(0)->shape, (Shape{2, 2}));
}

std::vector<std::string> types_of(const std::vector<device::LayerTime>& layers) {
  std::vector<std::string> types;
  for (const device::LayerTime& layer : layers) types.push_back(layer.type);
  return types;
}

TEST(OrtProgram, LayerTimesAreThoseOfTheLastRun) {
  device::PrepareOptions options;
  options.profile_layers = true;
  const auto program = prepare(onnx_image(product_network(), product_constants()), options);
  ASSERT_NE(program, nullptr);
  const auto r = request(*program);
  EXPECT_EQ(r->layer_times().error().code(), Code::kWrongState);
  std::vector<float> x = {1, 10};
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 2})).ok());
  // Read after the second run of a session, and after the first of the next one.
  for (const int runs : {2, 1}) {
    for (int i = 0; i < runs; ++i) ASSERT_TRUE(r->run(1).ok());
    EXPECT_THAT(floats_of(*r, 0), ElementsAre(41, 52, 63));
    for (int reads = 0; reads < 2; ++reads) {
      const auto layers = r->layer_times();
      ASSERT_TRUE(layers) << layers.error().to_string();
      ASSERT_THAT(types_of(*layers), ElementsAre("MatMul"));
      EXPECT_EQ(layers->front().name, "product");
      EXPECT_EQ(layers->front().dtype, DType::kF32);
      EXPECT_TRUE(layers->front().executed);
    }
  }
  EXPECT_EQ(request(*prepare(onnx_image(relu_network())))->layer_times().error().code(),
            Code::kUnsupported);
}

TEST(OrtProgram, ARunThatFailedHasNoLayerTimes) {
  device::PrepareOptions options;
  options.profile_layers = true;
  const auto program = prepare(onnx_image(NetworkBuilder()
                                              .input("x", {-1})
                                              .input("i", {-1}, kOnnxInt64)
                                              .node("Gather", {"x", "i"}, {"y"}, "pick")
                                              .output("y", {-1})
                                              .bytes()),
                               options);
  ASSERT_NE(program, nullptr);
  const auto r = request(*program);
  std::vector<float> x = {1, 2, 3};
  std::vector<std::int64_t> i = {2};
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {3})).ok());
  ASSERT_TRUE(r->set_input(1, tensor_ref(i, {1})).ok());
  for (const std::int64_t place : {2, 9, 1}) {
    i[0] = place;
    EXPECT_EQ(r->run(1).ok(), place < 3);
    const auto layers = r->layer_times();
    if (place < 3)
      ASSERT_TRUE(layers) << layers.error().to_string();
    else
      EXPECT_EQ(layers.error().code(), Code::kWrongState);
  }
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu::ort
