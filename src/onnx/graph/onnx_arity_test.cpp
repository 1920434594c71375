#include "onnx/graph/onnx_arity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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
      EXPECT_FALSE(check_arity(node, 0).ok()) << rule.op << " is missing in onnx_arity.cpp";
    }
  }
}

TEST(CheckArity, NamesTheNodeAndTheNumbers) {
  ::onnx::NodeProto node;
  node.set_op_type("Tile");
  node.set_name("t");
  node.add_input("x");
  node.add_output("y");
  const Status s = check_arity(node, 3);
  EXPECT_EQ(s.code(), Code::kMalformed);
  EXPECT_THAT(s.message(), ::testing::AllOf(::testing::HasSubstr("t (Tile)"),
                                            ::testing::HasSubstr("1 inputs and 1 outputs")));
  node.add_input("repeats");
  EXPECT_TRUE(check_arity(node, 3).ok());
}

TEST(CheckArity, LeavesOtherDomainsAlone) {
  ::onnx::NodeProto node;
  node.set_op_type("Tile");
  node.set_domain("mine");
  EXPECT_TRUE(check_arity(node, 0).ok());
}

}  // namespace
}  // namespace corelane::onnx
