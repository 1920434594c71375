// Reading attributes, and what is inferred of sizes by them.
#include "onnx/graph/onnx_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using A = ::onnx::AttributeProto;

A& add(::onnx::NodeProto& node, const char* name, A::AttributeType type) {
  A& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

TEST(OnnxGraph, AttributeWhoseZeroWasLeftOutIsThere) {
  ::onnx::NodeProto node;
  add(node, "axis", A::INT);
  add(node, "alpha", A::FLOAT);
  add(node, "mode", A::STRING);
  add(node, "of_a_function", A::INT).set_ref_attr_name("axis");
  EXPECT_EQ(int_attribute(node, "axis", 1), 0);
  EXPECT_EQ(float_attribute(node, "alpha", 0.2F), 0.0F);
  EXPECT_EQ(string_attribute(node, "mode", "linear"), "");
  EXPECT_EQ(int_attribute(node, "of_a_function", 7), 7);
  EXPECT_EQ(int_attribute(node, "missing", 3), 3);
  EXPECT_EQ(int_attribute(node, "alpha", 3), 3) << "of another type";
}

/// ONNX Runtime multiplies in floats: 0.7 x 10 is 7 in these, and 6.999 in doubles.
TEST(OnnxGraph, SizesOfAResizeAreRoundedAsFloats) {
  TestModel m(18);
  m.input("x", {1, 1, 10, 10}).open_output("y");
  m.floats("scales", {4}, {1, 1, 0.7F, 2.3F});
  m.node("Resize", {"x", "", "scales"}, {"y"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->description.outputs[0].desc.shape.to_string(),
            (Shape{1, 1, 7, 23}).to_string());
}

}  // namespace
}  // namespace corelane::onnx
