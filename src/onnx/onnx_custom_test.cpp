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

using Outputs = std::vector<std::string>;

/// MyOp with these outputs, of which nothing describes the last.
TestModel undescribed(const Outputs& outputs) {
  TestModel m;
  m.input("x", {4});
  if (outputs.size() > 1) m.output(outputs.front(), {5});
  m.output("z", {4});
  m.node("MyOp", {"x"}, outputs).set_domain("vendor");
  m.node("Relu", {outputs.back()}, {"z"});
  return m;
}

TEST(OnnxCustom, OutputsOfWhichNothingSaysTheShapeAreRefused) {
  ImportOptions options;
  options.custom_operators = {"MyOp"};
  for (const auto& outputs : {Outputs{"t"}, Outputs{"y", "t"}}) {
    const auto imported = undescribed(outputs).import(options);
    ASSERT_FALSE(imported);
    EXPECT_EQ(imported.error().code(), Code::kUnsupportedModel);
    EXPECT_THAT(imported.error().message(), HasSubstr("output 't'"));
    EXPECT_THAT(imported.error().message(), HasSubstr("value_info"));
  }
}

TEST(OnnxCustom, AttributesThatNoHostOperatorGetsAreRefused) {
  TestModel m = custom();
  auto& a = *m.graph().mutable_node(0)->add_attribute();
  a.set_name("table");
  a.set_type(::onnx::AttributeProto::TENSOR);
  a.mutable_t()->set_data_type(::onnx::TensorProto::FLOAT);
  a.mutable_t()->add_dims(0);
  ImportOptions options;
  options.custom_operators = {"MyOp"};
  const auto imported = m.import(options);
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().code(), Code::kUnsupportedModel);
  EXPECT_THAT(imported.error().message(), HasSubstr("attribute 'table'"));
  options.custom_operators = {std::string(kEveryCustomOperator)};
  const auto later = m.import(options);
  ASSERT_TRUE(later) << later.error().to_string();
  EXPECT_THAT(string_attribute(graph_of(*later).node(0), "corelane_refusal", ""),
              HasSubstr("attribute 'table'"));
}

TEST(OnnxCustom, WhereEveryUnknownOperatorIsDeclaredTheRunsAreRefusedInstead) {
  ImportOptions options;
  options.custom_operators = {std::string(kEveryCustomOperator)};
  for (const auto& outputs : {Outputs{"t"}, Outputs{"y", "t"}}) {
    const auto imported = undescribed(outputs).import(options);
    ASSERT_TRUE(imported) << imported.error().to_string();
    const auto node = graph_of(*imported).node(0);
    EXPECT_THAT(string_attribute(node, "corelane_refusal", ""), HasSubstr("output 't'"));
    // The engine gets the shapes that are known, and assumes that of the input for the others.
    const auto* shapes = find_attribute(node, "corelane_output_shapes");
    ASSERT_NE(shapes, nullptr);
    ASSERT_EQ(shapes->strings_size(), static_cast<int>(outputs.size()));
    EXPECT_EQ(shapes->strings(shapes->strings_size() - 1), "4");
    if (outputs.size() > 1) EXPECT_EQ(shapes->strings(0), "5");
  }
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
