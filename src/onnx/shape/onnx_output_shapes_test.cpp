#include "onnx/shape/onnx_output_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using Sets = std::vector<std::vector<Shape>>;
using Row = std::vector<std::optional<Shape>>;
using ::testing::ElementsAre;

/// The outputs of an imported model for each set.
std::vector<Row> outputs_of(const TestModel& model, const Sets& sets) {
  const auto imported = model.import();
  EXPECT_TRUE(imported) << imported.error().to_string();
  auto found = infer_output_shapes(imported->graph, imported->constants, sets);
  EXPECT_TRUE(found) << found.error().to_string();
  return found.value_or(std::vector<Row>());
}

TEST(OnnxOutputShapes, FollowFromTheInputsOfEachSet) {
  TestModel model;
  model.input("x", {"n", 4, "w"}).input("y", {1, "w"}).output("sum", {"n", 4, "w"});
  model.open_output("flat").output("count", {});
  model.ints("shape", {0, -1});
  model.node("Add", {"x", "y"}, {"sum"});
  model.node("Reshape", {"sum", "shape"}, {"flat"});
  auto& reduce = model.node("ReduceMax", {"sum"}, {"count"});
  set_attribute(reduce, "keepdims", std::int64_t{0});
  const auto found =
      outputs_of(model, {{Shape{2, 4, 3}, Shape{1, 3}}, {Shape{1, 4, 8}, Shape{1, 8}}});
  EXPECT_THAT(found, ElementsAre(Row{Shape{2, 4, 3}, Shape{2, 12}, Shape{}},
                                 Row{Shape{1, 4, 8}, Shape{1, 32}, Shape{}}));
}

TEST(OnnxOutputShapes, ThoseThatValuesDecideAreNotClaimed) {
  TestModel model;
  model.input("x", {5}).input("n", {1}, ::onnx::TensorProto::INT64).output("y", {"m"});
  model.output("z", {1, "k"}, ::onnx::TensorProto::INT64);
  model.node("Expand", {"x", "n"}, {"y"});
  model.node("NonZero", {"x"}, {"z"});
  EXPECT_THAT(outputs_of(model, {{Shape{5}, Shape{1}}}),
              ElementsAre(Row{std::nullopt, std::nullopt}));
}

/// Constants of older models are inputs as well; a set names the others.
TEST(OnnxOutputShapes, InitialisersAreNoInputs) {
  TestModel model;
  model.input("x", {"n", 3}).input("w", {3, 7}).output("y", {"n", 7});
  model.floats("w", {3, 7}, std::vector<double>(21, 1));
  model.node("MatMul", {"x", "w"}, {"y"});
  EXPECT_THAT(outputs_of(model, {{Shape{6, 3}}}), ElementsAre(Row{Shape{6, 7}}));
}

TEST(OnnxOutputShapes, WhatDoesNotFitIsAStatus) {
  TestModel model;
  model.input("x", {"n", 3}).output("y", {"n", 3}).node("Relu", {"x"}, {"y"});
  const auto imported = model.import().value();
  const auto infer = [&](const Sets& sets) {
    return infer_output_shapes(imported.graph, imported.constants, sets);
  };
  EXPECT_EQ(infer({{Shape{1, 4}}}).error().code(), Code::kShapeMismatch);
  EXPECT_EQ(infer({{}}).error().code(), Code::kMalformed);
  const std::vector<Shape> set{Shape{1, 3}};
  EXPECT_EQ(infer_output_shapes(as_byte_span("no network"), {}, Sets{set}).error().code(),
            Code::kMalformed);
}

TEST(OnnxOutputShapes, FromInputsTheyAreWhatFollowsWhateverTheFileSays) {
  TestModel model;
  model.input("x", {"n", 3}).input("m", {1}, ::onnx::TensorProto::INT64);
  model.output("y", {8, 3}).output("z", {5});
  model.node("Relu", {"x"}, {"y"});
  model.node("Expand", {"x", "m"}, {"z"});
  const std::string bytes = model.proto().SerializeAsString();
  const auto found = [&](const std::map<std::string, Shape>& inputs) {
    return shapes_from_inputs(as_byte_span(bytes), {}, inputs).value();
  };
  EXPECT_THAT(found({{"x", Shape{2, 3}}}), ElementsAre(Shape{2, 3}, std::nullopt));
  EXPECT_THAT(found({{"x", Shape{Shape::kOpen, 3}}}), ElementsAre(std::nullopt, std::nullopt));
  EXPECT_EQ(shapes_from_inputs(as_byte_span(bytes), {}, {{"x", Shape{2, 4}}}).error().code(),
            Code::kShapeMismatch);
  EXPECT_EQ(shapes_from_inputs(as_byte_span("no network"), {}, {}).error().code(),
            Code::kMalformed);
}

TEST(OnnxImport, PartialInputsAreThoseThatAreNamed) {
  TestModel model;
  model.input("x", {2}).input("y", {2}).output("z", {2}).node("Add", {"x", "y"}, {"z"});
  ImportOptions options;
  options.partial_inputs = {"y"};
  const auto imported = model.import(options).value();
  EXPECT_FALSE(imported.description.inputs[0].partial_allowed);
  EXPECT_TRUE(imported.description.inputs[1].partial_allowed);
  options.partial_inputs = {"y", "z"};
  const auto refused = model.import(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.error().message(),
              ::testing::HasSubstr("'z' is to be partial; the inputs are: x, y"));
}

}  // namespace
}  // namespace corelane::onnx
