#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

constexpr std::int64_t kFloats = 1000;

std::vector<double> ramp(double first) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < kFloats; ++i) values.push_back(first + static_cast<double>(i));
  return values;
}

/// y = x + first + second, two constants of 4,000 bytes each.
ImportedModel two_constants(double first, double second) {
  TestModel m;
  m.input("x", {kFloats}).output("y", {kFloats});
  m.floats("a", {kFloats}, ramp(first)).floats("b", {kFloats}, ramp(second));
  m.node("Add", {"x", "a"}, {"z"});
  m.node("Add", {"z", "b"}, {"y"});
  return m.import().value();
}

/// The first value of a constant, as a reader finds it.
float first_of(const ImportedModel& model, ByteSpan constants, const std::string& name) {
  const ::onnx::GraphProto graph = given_graph_of(model);
  for (const auto& tensor : graph.initializer()) {
    if (tensor.name() != name) continue;
    const auto bytes = constants_slice(tensor, constants);
    EXPECT_TRUE(bytes) << bytes.error().to_string();
    float value = -1;
    if (bytes) std::memcpy(&value, bytes->data(), sizeof value);
    EXPECT_EQ((bytes->data() - constants.data()) % 64, 0);
    return value;
  }
  return -1;
}

TEST(OnnxMerge, EqualConstantsOfSeveralNetworksAreKeptOnce) {
  std::vector<ImportedModel> models{two_constants(1, 2), two_constants(2, 3), two_constants(1, 1)};
  const auto constants = merge_constants(models);
  ASSERT_TRUE(constants) << constants.error().to_string();
  // Three that differ, each at a multiple of 64.
  EXPECT_EQ(constants->size(), 2 * 4032U + 4000U);
  const float expected[][2] = {{1, 2}, {2, 3}, {1, 1}};
  for (std::size_t i = 0; i < models.size(); ++i) {
    EXPECT_TRUE(models[i].constants.empty());
    EXPECT_EQ(first_of(models[i], *constants, "a"), expected[i][0]) << i;
    EXPECT_EQ(first_of(models[i], *constants, "b"), expected[i][1]) << i;
    EXPECT_TRUE(inline_constants(models[i].graph, *constants)) << i;
  }
}

TEST(OnnxMerge, LoweredFormsFollow) {
  // Dropout is written in other nodes for an engine.
  TestModel m;
  m.input("x", {kFloats / 10, 10}).output("y", {kFloats / 10, 10});
  m.floats("a", {kFloats / 10, 10}, ramp(5));
  m.node("Add", {"x", "a"}, {"z"});
  m.node("Dropout", {"z"}, {"y"});
  std::vector<ImportedModel> models{two_constants(1, 2), m.import().value()};
  const auto lowered = std::ranges::find_if(
      models[1].lowered, [](const LoweredGraph& form) { return !form.graph.empty(); });
  ASSERT_NE(lowered, models[1].lowered.end());
  const auto constants = merge_constants(models);
  ASSERT_TRUE(constants) << constants.error().to_string();
  const ImportedModel form{lowered->graph, {}, {}, {}};
  EXPECT_EQ(first_of(form, *constants, "a"), 5);
}

TEST(OnnxMerge, AGraphThatPointsOutsideIsRefused) {
  std::vector<ImportedModel> models{two_constants(1, 2)};
  models[0].constants.resize(100);
  EXPECT_EQ(merge_constants(models).error().code(), Code::kMalformed);
}

}  // namespace
}  // namespace corelane::onnx
