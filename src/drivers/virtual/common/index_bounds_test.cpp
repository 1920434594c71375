#include "drivers/virtual/common/index_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/virtual/common/onnx_node.h"
#include "drivers/virtual/test_networks.h"

namespace corelane::drivers::virtual_npu {
namespace {

using ::testing::HasSubstr;

/// A table of 5 rows, and indices that have gone through `movers`.
std::vector<IndexBound> bounds_behind(const std::vector<std::string>& movers,
                                      std::int64_t cast_to = kOnnxInt64) {
  NetworkBuilder network;
  network.input("ids", {2, 3}, kOnnxInt64).floats("table", {5, 4}, std::vector<float>(20));
  std::string value = "ids";
  for (const std::string& op : movers) {
    std::vector<std::string> attributes;
    if (op == "Cast") attributes = {make_integer_attribute("to", cast_to)};
    network.node(op, {value}, {value + "_" + op}, "", attributes);
    value += "_" + op;
  }
  network.node("Gather", {"table", value}, {"y"}, "lookup").output("y", {-1});
  const auto patched = patch_onnx(onnx_image(network.bytes()), {});
  EXPECT_TRUE(patched) << patched.error().to_string();
  const auto bounds = index_bounds(as_byte_span(patched->bytes), patched->inputs);
  EXPECT_TRUE(bounds) << bounds.error().to_string();
  return *bounds;
}

TEST(IndexBounds, IndicesThatAreAnInputAreBoundByTheTable) {
  for (const auto& movers : {std::vector<std::string>{}, {"Cast"}, {"Transpose", "Identity"}}) {
    const auto bounds = bounds_behind(movers);
    ASSERT_EQ(bounds.size(), 1U);
    EXPECT_EQ(bounds[0].input, 0U);
    EXPECT_EQ(bounds[0].size, 5);
    EXPECT_EQ(bounds[0].node, "lookup");
  }
}

TEST(IndexBounds, IndicesThatTheNetworkComputesHaveNone) {
  EXPECT_TRUE(bounds_behind({"Abs"}).empty());
  EXPECT_TRUE(bounds_behind({"Cast"}, 2).empty()) << "uint8 keeps other values";
}

TEST(IndexBounds, TheAxisIsTheAttributesAndMayCountFromTheEnd) {
  for (const std::int64_t axis : {-2, -1, 1, 2}) {
    const std::string model =
        NetworkBuilder()
            .input("x", {2, 3, 4})
            .input("i", {1}, kOnnxInt64)
            .node("Gather", {"x", "i"}, {"y"}, "", {make_integer_attribute("axis", axis)})
            .output("y", {-1})
            .bytes();
    const auto patched = patch_onnx(onnx_image(model), {});
    ASSERT_TRUE(patched);
    const auto bounds = index_bounds(as_byte_span(model), patched->inputs);
    ASSERT_TRUE(bounds);
    if (axis == 2 || axis == -1)
      EXPECT_EQ(bounds->at(0).size, 4);
    else
      EXPECT_EQ(bounds->at(0).size, 3);
    EXPECT_EQ(bounds->at(0).node, "y") << "without a name, its output's";
  }
}

TEST(IndexBounds, TheFailureNamesNodeInputValueAndPlace) {
  const IndexBound bound{0, 5, "lookup"};
  const std::vector<std::int64_t> wide{0, 4, -5, 5};
  EXPECT_TRUE(check_indices(bound, "ids", DType::kI64, wide.data(), 3).ok());
  const Status status = check_indices(bound, "ids", DType::kI64, wide.data(), 4);
  EXPECT_EQ(status.code(), Code::kEngineFailed);
  EXPECT_THAT(status.message(),
              HasSubstr("node 'lookup' (Gather): input 'ids' has the index 5 at element 3; allowed "
                        "are -5 to 4"));
  const std::vector<std::int32_t> narrow{1, -6};
  EXPECT_FALSE(check_indices(bound, "ids", DType::kI32, narrow.data(), 2).ok());
  const std::vector<float> cast{4.9F, -5.9F, 5.0F};
  EXPECT_TRUE(check_indices(bound, "ids", DType::kF32, cast.data(), 2).ok()) << "cut off";
  EXPECT_FALSE(check_indices(bound, "ids", DType::kF32, cast.data(), 3).ok());
  const std::vector<std::uint8_t> bytes{4, 5};
  EXPECT_TRUE(check_indices(bound, "ids", DType::kU8, bytes.data(), 1).ok());
  EXPECT_FALSE(check_indices(bound, "ids", DType::kU8, bytes.data(), 2).ok());
  EXPECT_TRUE(check_indices(bound, "ids", DType::kString, nullptr, 2).ok()) << "no number";
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
