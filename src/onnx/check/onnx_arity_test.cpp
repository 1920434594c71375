#include "onnx/check/onnx_arity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "onnx/lowering/onnx_rewriter.h"
#include "onnx/lowering/onnx_rules.h"

namespace corelane::onnx {
namespace {

TEST(CheckArity, KnowsEveryOperatorThatHasARule) {
  for (const auto rules : {cast_rules(), shape_rules(), resize_rules(), math_rules(),
                           attention_rules(), fourier_rules(), recurrent_rules()}) {
    for (const Rule& rule : rules) {
      ::onnx::NodeProto node;
      node.set_op_type(std::string(rule.op));
      // OptionalHasElement is the only one that needs no input; none needs neither.
      EXPECT_FALSE(check_arity(node, 0, 17).ok()) << rule.op << " is missing in onnx_arity.cpp";
    }
  }
}

TEST(CheckArity, NamesTheNodeAndTheNumbers) {
  ::onnx::NodeProto node;
  node.set_op_type("Tile");
  node.set_name("t");
  node.add_input("x");
  node.add_output("y");
  const Status s = check_arity(node, 3, 17);
  EXPECT_EQ(s.code(), Code::kMalformed);
  EXPECT_THAT(
      s.message(),
      ::testing::AllOf(
          ::testing::HasSubstr("t (Tile)"),
          ::testing::HasSubstr("1 inputs and 1 outputs; version 6 of the operator has 2 and 1")));
  node.add_input("repeats");
  EXPECT_TRUE(check_arity(node, 3, 17).ok());
}

::onnx::NodeProto node_of(const char* op, const std::vector<std::string>& inputs) {
  ::onnx::NodeProto node;
  node.set_op_type(op);
  for (const std::string& name : inputs) node.add_input(name);
  node.add_output("y");
  return node;
}

TEST(CheckArity, RefusesInputsThatAreLeftOutOrTooMany) {
  EXPECT_FALSE(check_arity(node_of("LogSoftmax", {}), 0, 17).ok());
  EXPECT_FALSE(check_arity(node_of("LogSoftmax", {""}), 0, 17).ok());
  EXPECT_FALSE(check_arity(node_of("Clip", {"", "", "most"}), 0, 17).ok());
  EXPECT_FALSE(check_arity(node_of("Concat", {"a", "", "c"}), 0, 17).ok());
  EXPECT_FALSE(check_arity(node_of("Min", {"a", "b", ""}), 0, 17).ok()) << "OpenVINO crashed";
  EXPECT_FALSE(check_arity(node_of("Relu", {"a", "b"}), 0, 17).ok());
  EXPECT_FALSE(check_arity(node_of("LabelEncoder", {}), 0, 17).ok());
}

TEST(CheckArity, KnowsTheVersions) {
  EXPECT_TRUE(check_arity(node_of("Unsqueeze", {"x"}), 0, 12).ok());
  EXPECT_FALSE(check_arity(node_of("Unsqueeze", {"x"}), 0, 13).ok());
  EXPECT_TRUE(check_arity(node_of("Tile", {"x", "tiles", "axis"}), 0, 5).ok());
  EXPECT_FALSE(check_arity(node_of("Tile", {"x", "tiles", "axis"}), 0, 6).ok());
}

TEST(CheckArity, TakesInputsThatMayBeLeftOut) {
  EXPECT_TRUE(check_arity(node_of("Clip", {"x", "", "most"}), 0, 17).ok());
  EXPECT_TRUE(check_arity(node_of("Relu", {"x", "", ""}), 0, 17).ok()) << "names at the end";
  EXPECT_TRUE(check_arity(node_of("Loop", {"", "", "v"}), 0, 17).ok());
  EXPECT_TRUE(check_arity(node_of("Loop", {"n", ""}), 0, 17).ok());
  EXPECT_TRUE(check_arity(node_of("Resize", {"x", "", "scales"}), 0, 17).ok());
}

TEST(CheckArity, LeavesOtherDomainsAlone) {
  ::onnx::NodeProto node;
  node.set_op_type("Tile");
  node.set_domain("mine");
  EXPECT_TRUE(check_arity(node, 0, 17).ok());
}

}  // namespace
}  // namespace corelane::onnx
