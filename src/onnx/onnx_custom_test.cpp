#include "onnx/onnx_custom.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using testing::HasSubstr;

TestModel custom() {
  TestModel m;
  m.input("x", {1, 4}).output("y", {1, "K"});
  m.node("MyOp", {"x"}, {"y"}).set_domain("vendor");
  return m;
}

TEST(OnnxCustom, UndeclaredOperatorIsRefusedWithTheOption) {
  const auto imported = custom().import();
  EXPECT_EQ(imported.error().code(), Code::kUnsupportedModel);
  EXPECT_THAT(imported.error().message(), HasSubstr("node_MyOp1"));
  EXPECT_THAT(imported.error().message(), HasSubstr("--custom-op vendor.MyOp"));
}

TEST(OnnxCustom, DeclaredOperatorGetsTypesAndShapes) {
  for (const char* name : {"MyOp", "vendor.MyOp"}) {
    ImportOptions options;
    options.custom_operators = {name};
    const auto imported = custom().import(options);
    ASSERT_TRUE(imported) << imported.error().to_string();
    const auto node = graph_of(*imported).node(0);
    EXPECT_EQ(ints_attribute(node, "corelane_output_dtypes"), std::vector<std::int64_t>{1});
    EXPECT_EQ(find_attribute(node, "corelane_output_shapes")->strings(0), "1,?");
    ASSERT_EQ(imported->description.custom_operators.size(), 1u);
    EXPECT_EQ(imported->description.custom_operators[0].type, "MyOp");
    EXPECT_EQ(imported->description.custom_operators[0].domain, "vendor");
    EXPECT_EQ(imported->description.custom_operators[0].nodes, 1u);
  }
}

TEST(OnnxCustom, OneOutputWithoutDescriptionIsLikeTheInput) {
  TestModel m;
  m.input("x", {4}).output("y", {4});
  m.node("MyOp", {"x"}, {"inner"}).set_domain("vendor");
  m.node("Relu", {"inner"}, {"y"});
  ImportOptions options;
  options.custom_operators = {"MyOp"};
  const auto imported = m.import(options);
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(find_attribute(graph_of(*imported).node(0), "corelane_output_shapes"), nullptr);
}

TEST(OnnxCustom, SeveralOutputsWithoutDescriptionAreRefused) {
  TestModel m;
  m.input("x", {4}).output("y", {4});
  m.node("MyOp", {"x"}, {"a", "b"}).set_domain("vendor");
  m.node("Add", {"a", "b"}, {"y"});
  ImportOptions options;
  options.custom_operators = {"MyOp"};
  const auto imported = m.import(options);
  EXPECT_EQ(imported.error().code(), Code::kUnsupportedModel);
  EXPECT_THAT(imported.error().message(), HasSubstr("value_info"));
}

TEST(OnnxCustom, DeclarationThatNothingUsesIsAnError) {
  ImportOptions options;
  options.custom_operators = {"MyOp", "Absent"};
  EXPECT_EQ(custom().import(options).error().code(), Code::kInvalidArgument);
}

TEST(OnnxCustom, EveryUnknownOperatorIsDeclaredByOneName) {
  TestModel m;
  m.input("x", {4}).output("y", {4});
  m.node("MyOp", {"x"}, {"a"}).set_domain("vendor");
  m.node("Relu", {"a"}, {"b"});
  m.node("NotInTheStandard", {"b"}, {"y"});
  ImportOptions options;
  options.custom_operators = {std::string(kEveryCustomOperator)};
  const auto imported = m.import(options);
  ASSERT_TRUE(imported) << imported.error().to_string();
  ASSERT_EQ(imported->description.custom_operators.size(), 2u);
  EXPECT_EQ(imported->description.custom_operators[0].type, "MyOp");
  EXPECT_EQ(imported->description.custom_operators[1].type, "NotInTheStandard");
}

TEST(OnnxCustom, EveryUnknownOperatorMayBeNone) {
  TestModel m;
  m.input("x", {4}).output("y", {4});
  m.node("Relu", {"x"}, {"y"});
  ImportOptions options;
  options.custom_operators = {std::string(kEveryCustomOperator)};
  const auto imported = m.import(options);
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_TRUE(imported->description.custom_operators.empty());
}

TEST(OnnxCustom, FunctionsOfTheModelAreNoCustomOperators) {
  TestModel m = custom();
  auto& f = *m.proto().add_functions();
  f.set_domain("vendor");
  f.set_name("MyOp");
  f.add_input("x");
  f.add_output("x");
  EXPECT_TRUE(m.import());
}

}  // namespace
}  // namespace corelane::onnx
