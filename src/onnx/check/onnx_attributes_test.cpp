#include "onnx/check/onnx_attributes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "onnx/graph/onnx_graph.h"

namespace corelane::onnx {
namespace {

constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();

Status check(const char* op, const char* name, std::int64_t value, const char* domain = "") {
  ::onnx::NodeProto node;
  node.set_op_type(op);
  node.set_domain(domain);
  set_attribute(node, name, value);
  Status one = check_attributes(node, 0);
  set_attribute(node, name, std::vector<std::int64_t>{1, value});
  EXPECT_EQ(one.code(), check_attributes(node, 0).code()) << "as a list";
  return one;
}

/// Issue 18: ONNX Runtime cut the number to 0 and divided by it.
TEST(CheckAttributes, RefusesIntegersThatEnginesCut) {
  const Status s = check("Attention", "kv_num_heads", std::int64_t{1} << 40);
  EXPECT_EQ(s.code(), Code::kUnsupportedModel);
  EXPECT_THAT(s.message(), ::testing::HasSubstr("kv_num_heads is 1099511627776"));
  EXPECT_FALSE(check("Attention", "num_heads", -kHigh, "com.microsoft").ok());
  EXPECT_TRUE(check("Gather", "axis", std::numeric_limits<std::int32_t>::min()).ok());
}

TEST(CheckAttributes, TakesLimitsAndValuesOfAnySize) {
  EXPECT_TRUE(check("Slice", "ends", kHigh).ok());
  EXPECT_TRUE(check("Constant", "value_ints", kHigh).ok());
  EXPECT_TRUE(check("LabelEncoder", "keys_int64s", -kHigh, "ai.onnx.ml").ok());
  EXPECT_TRUE(check("Anything", "size", kHigh, "mine").ok()) << "of another domain";
}

TEST(CheckAttributes, RefusesCountsBelowOne) {
  EXPECT_EQ(check("Conv", "group", 0).code(), Code::kMalformed);
  EXPECT_EQ(check("Attention", "q_num_heads", -3).code(), Code::kMalformed);
}

}  // namespace
}  // namespace corelane::onnx
