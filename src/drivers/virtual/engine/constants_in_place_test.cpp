#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "drivers/virtual/test_programs.h"

namespace corelane::drivers::virtual_npu {
namespace {

constexpr std::size_t kRows = 4096;
constexpr std::size_t kWidth = 64;
/// 1 MiB, 64 bytes into the image's constants.
constexpr std::size_t kTable = kRows * kWidth * sizeof(float);

/// y = table[ids] + (x + bias), and the table in the constants. The engine would add a bias alone
/// to a table of its own.
std::string lookup_network(float bias) {
  return NetworkBuilder()
      .input("ids", {2}, 7)
      .input("x", {1})
      .external("table", {kRows, kWidth}, kOnnxFloat, "corelane:constants", "64",
                std::to_string(kTable))
      .floats("bias", {1}, {bias})
      .node("Gather", {"table", "ids"}, {"rows"})
      .node("Add", {"x", "bias"}, {"z"})
      .node("Add", {"rows", "z"}, {"y"})
      .output("y", {2, kWidth})
      .bytes();
}

/// Constants that a test can write to; those of a mapped file are read-only.
struct Image {
  std::shared_ptr<ByteVector> constants = std::make_shared<ByteVector>(64 + kTable);

  explicit Image(float value) { fill(value); }
  void fill(float value) const {
    const std::vector<float> all(kRows * kWidth, value);
    std::memcpy(constants->data() + 64, all.data(), kTable);
  }
  device::Image of(const std::string& network, bool immutable = true) const {
    device::Image image = onnx_image(network);
    image.constants = *constants;
    using Owners = std::pair<std::shared_ptr<const void>, std::shared_ptr<ByteVector>>;
    image.keep_alive = std::make_shared<Owners>(image.keep_alive, constants);
    image.immutable = immutable;
    return image;
  }
};

float first_value(device::LaneProgram& program) {
  const auto r = request(program);
  std::vector<std::int64_t> ids{0, 3};
  std::vector<float> x{0};
  EXPECT_TRUE(r->set_input(0, tensor_ref(ids, {2})).ok());
  EXPECT_TRUE(r->set_input(1, tensor_ref(x, {1})).ok());
  EXPECT_TRUE(r->run(1).ok());
  return floats_of(*r, 0)[0];
}

TEST(ConstantsInPlace, AreReadInTheImageWhereThatNeverChanges) {
  for (const bool immutable : {true, false}) {
    const Image image(1);
    const auto program = prepare(image.of(lookup_network(0.5F), immutable), {}, 1);
    EXPECT_EQ(first_value(*program), 1.5F);
    image.fill(7);
    EXPECT_EQ(first_value(*program), immutable ? 7.5F : 1.5F);
  }
}

TEST(ConstantsInPlace, CountOnceForAllProgramsThatReadThem) {
  const auto engine = make_virtual_engine(1, false);
  const Image image(1);
  std::vector<std::shared_ptr<device::LaneProgram>> programs;
  const auto sum = [&] {
    std::size_t bytes = 0;
    for (const auto& program : programs) bytes += program->memory().weights;
    return bytes;
  };
  for (const float bias : {1.0F, 2.0F, 3.0F, 4.0F}) {
    programs.push_back(engine->prepare(image.of(lookup_network(bias)), {}).value());
    EXPECT_GE(sum(), kTable - 4);
    EXPECT_LT(sum(), kTable + kTable / 16) << bias;
  }
  for (std::size_t i = 0; i < programs.size(); ++i)
    EXPECT_EQ(first_value(*programs[i]), 2.0F + static_cast<float>(i));
  programs.resize(1);
  EXPECT_GE(sum(), kTable);
  // Equal constants of another image are others.
  programs.push_back(engine->prepare(Image(1).of(lookup_network(5)), {}).value());
  EXPECT_GE(sum(), 2 * kTable);
}

TEST(ConstantsInPlace, WhatTheEnginePacksCountsForEachProgram) {
  const auto engine = make_virtual_engine(1, false);
  const Image image(1);
  const std::string network = NetworkBuilder()
                                  .input("x", {1, kRows})
                                  .external("table", {kRows, kWidth}, kOnnxFloat,
                                            "corelane:constants", "64", std::to_string(kTable))
                                  .node("MatMul", {"x", "table"}, {"y"})
                                  .output("y", {1, kWidth})
                                  .bytes();
  const auto first = engine->prepare(image.of(network), {}).value();
  EXPECT_GE(first->memory().weights, 2 * kTable);
  const auto second = engine->prepare(image.of(network), {}).value();
  EXPECT_GE(first->memory().weights, kTable + kTable / 2);
  EXPECT_LT(first->memory().weights, 2 * kTable);
  EXPECT_GE(second->memory().weights, kTable + kTable / 2);
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
