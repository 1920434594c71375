#include <gtest/gtest.h>

#include "model/onnx_test_model.h"

namespace corelane::onnx_import {
namespace {

using T = onnx::TensorProto;

ImportOptions batch_of(std::uint32_t batch) {
  ImportOptions options;
  options.batch = batch;
  return options;
}

TEST(OnnxBatch, MultipliesDimensionZeroOfInputsAndOutputs) {
  TestModel m;
  m.input("x", {1, 4}).input("y", {"n", 4}).output("z", {1, 4});
  m.node("Add", {"x", "y"}, {"z"});
  const auto imported = m.import(batch_of(3));
  ASSERT_TRUE(imported) << imported.error().to_string();
  const auto& d = imported->description;
  EXPECT_EQ(d.batch, 3U);
  EXPECT_EQ(d.inputs[0].desc.shape, (Shape{3, 4}));
  EXPECT_EQ(d.inputs[1].desc.shape, (Shape{3, 4}));
  EXPECT_EQ(d.outputs[0].desc.shape, (Shape{3, 4}));
}

TEST(OnnxBatch, ReshapeThatNamesOneCopyNamesAll) {
  TestModel m;
  m.input("x", {1, 2, 3}).output("y", {1, 6});
  m.ints("shape", {1, 6});
  m.node("Reshape", {"x", "shape"}, {"y"});
  const auto imported = m.import(batch_of(5));
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->description.outputs[0].desc.shape, (Shape{5, 6}));
}

TEST(OnnxBatch, CopiesAreFollowedThroughTransposes) {
  TestModel m;
  m.input("x", {1, 2, 3}).output("y", {1, 2, 3});
  for (const auto& [in, out] : {std::pair{"x", "t"}, std::pair{"r", "y"}}) {
    auto& a = *m.node("Transpose", {in}, {out}).add_attribute();
    a.set_name("perm");
    a.set_type(onnx::AttributeProto::INTS);
    for (const int i : {1, 0, 2}) a.add_ints(i);
    if (std::string_view(out) == "t") m.node("Relu", {"t"}, {"r"});
  }
  const auto imported = m.import(batch_of(2));
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->description.outputs[0].desc.shape, (Shape{2, 2, 3}));
}

TEST(OnnxBatch, OutputWithItsCopiesElsewhereIsRefused) {
  TestModel m;
  m.input("x", {1, 2}).output("y", {2, 1});
  m.node("Transpose", {"x"}, {"y"});
  const auto imported = m.import(batch_of(2));
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().code(), Code::kUnsupportedModel);
  EXPECT_NE(imported.error().message().find("'y'"), std::string::npos);
}

TEST(OnnxBatch, NodeThatMixesTheCopiesIsRefusedByName) {
  TestModel m;
  m.input("x", {1, 4}).output("y", {1, 4});
  auto& a = *m.node("Softmax", {"x"}, {"y"}).add_attribute();
  a.set_name("axis");
  a.set_type(onnx::AttributeProto::INT);
  a.set_i(0);
  const auto imported = m.import(batch_of(2));
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().code(), Code::kUnsupportedModel);
  EXPECT_NE(imported.error().message().find("node_Softmax1"), std::string::npos);
}

TEST(OnnxBatch, FixedFirstDimensionOtherThanOneIsRefused) {
  TestModel m;
  m.input("x", {2, 4}).output("y", {2, 4});
  m.node("Relu", {"x"}, {"y"});
  const auto imported = m.import(batch_of(2));
  ASSERT_FALSE(imported);
  EXPECT_NE(imported.error().message().find("is 2"), std::string::npos);
}

TEST(OnnxBatch, OperatorThatIsNotUnderstoodBecomesAWarning) {
  TestModel m;
  m.input("x", {1, 4}).output("y", {1, 4});
  m.node("CumSum", {"x", "axis"}, {"y"});
  m.ints("axis", {1});
  const auto imported = m.import(batch_of(2));
  ASSERT_TRUE(imported) << imported.error().to_string();
  ASSERT_FALSE(imported->description.findings.empty());
  EXPECT_EQ(imported->description.findings.back().kind, ImportFinding::Kind::kWarning);
}

}  // namespace
}  // namespace corelane::onnx_import
