#include "onnx/shape/onnx_freeze.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using testing::HasSubstr;

TestModel two_inputs() {
  TestModel m;
  m.input("a", {"N", "S"}).input("b", {"N", 4}).output("y", {"N", "S"});
  m.node("Relu", {"a"}, {"y"});
  m.node("Relu", {"b"}, {"unused"});
  return m;
}

TEST(OnnxFreeze, SymbolIsReplacedEverywhere) {
  ImportOptions options;
  options.dims["N"] = 2;
  const auto imported = two_inputs().import(options);
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->description.inputs[0].desc.shape, (Shape{2, -1}));
  EXPECT_EQ(imported->description.inputs[1].desc.shape, (Shape{2, 4}));
  EXPECT_EQ(imported->description.outputs[0].desc.shape, (Shape{2, -1}));
}

TEST(OnnxFreeze, InputShapeGivesItsSymbolsTheirValue) {
  ImportOptions options;
  options.input_shapes["a"] = Shape{3, 7};
  const auto imported = two_inputs().import(options);
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->description.inputs[1].desc.shape, (Shape{3, 4}));
  EXPECT_EQ(imported->description.outputs[0].desc.shape, (Shape{3, 7}));
}

TEST(OnnxFreeze, OpenDimensionsMayStay) {
  ImportOptions options;
  options.input_shapes["a"] = Shape{-1, 7};
  const auto imported = two_inputs().import(options);
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->description.inputs[0].desc.shape, (Shape{-1, 7}));
}

TEST(OnnxFreeze, AnOpenBatchIsFixedWhereNothingElseIsOpen) {
  ImportOptions options;
  options.open_batch = 1;
  const auto open = two_inputs().import(options);
  ASSERT_TRUE(open) << open.error().to_string();
  EXPECT_EQ(open->description.inputs[1].desc.shape, (Shape{-1, 4}));

  options.dims["S"] = 7;
  const auto fixed = two_inputs().import(options);
  ASSERT_TRUE(fixed) << fixed.error().to_string();
  EXPECT_EQ(fixed->description.inputs[0].desc.shape, (Shape{1, 7}));
  EXPECT_EQ(fixed->description.inputs[1].desc.shape, (Shape{1, 4}));
  EXPECT_EQ(fixed->description.outputs[0].desc.shape, (Shape{1, 7}));
}

TEST(OnnxFreeze, UnknownNamesAreListed) {
  ImportOptions options;
  options.dims["M"] = 2;
  const Status unknown = two_inputs().import(options).error();
  EXPECT_THAT(unknown.message(), HasSubstr("N, S"));
  EXPECT_EQ(unknown.code(), Code::kNotFound);
  EXPECT_EQ(unknown.detail(Detail::kDimension), "M");
  EXPECT_EQ(unknown.detail(Detail::kAllowed), "N, S");
  options.dims.clear();
  options.input_shapes["c"] = Shape{1};
  EXPECT_EQ(two_inputs().import(options).error().code(), Code::kInvalidArgument);
  EXPECT_THAT(two_inputs().import(options).error().message(), HasSubstr("a, b"));
}

TEST(OnnxFreeze, DimensionsWithoutANameAreNamedByInputAndAxis) {
  TestModel m;
  m.input("a", {"", "S"}).output("y", {"", "S"});
  m.node("Relu", {"a"}, {"y"});
  ImportOptions options;
  options.dims["a[0]"] = 3;
  const auto imported = m.import(options);
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->description.inputs[0].desc.shape, (Shape{3, -1}));
  // 1 has a name, 2 is none.
  for (const char* other : {"a[1]", "a[2]", "b[0]", "a[]", "a[00]", "[0]", "a]"}) {
    options.dims = {{other, 3}};
    const Status refused = m.import(options).error();
    EXPECT_EQ(refused.code(), Code::kNotFound) << other;
    EXPECT_THAT(refused.message(), HasSubstr("INPUT[AXIS]"));
  }
}

TEST(OnnxFreeze, SizesBelowOneAreRefused) {
  ImportOptions options;
  options.dims["N"] = 0;
  const Status refused = two_inputs().import(options).error();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_EQ(refused.detail(Detail::kDimension), "N");
  EXPECT_EQ(refused.detail(Detail::kGiven), "0");
}

TEST(OnnxFreeze, ShapesMustFitTheDeclaredOnes) {
  ImportOptions options;
  for (const Shape& wrong : {Shape{1, 5}, Shape{1, 4, 1}}) {
    options.input_shapes["b"] = wrong;
    const Status refused = two_inputs().import(options).error();
    EXPECT_EQ(refused.code(), Code::kShapeMismatch);
    EXPECT_EQ(refused.detail(Detail::kInput), "b");
    EXPECT_EQ(refused.detail(Detail::kGiven), wrong.to_string());
    EXPECT_EQ(refused.detail(Detail::kAllowed), "[?, 4]");
  }
}

TEST(OnnxFreeze, OneSymbolHasOneValue) {
  ImportOptions options;
  options.input_shapes["a"] = Shape{1, 4};
  options.input_shapes["b"] = Shape{2, 4};
  const Status refused = two_inputs().import(options).error();
  EXPECT_EQ(refused.code(), Code::kShapeMismatch);
  EXPECT_EQ(refused.detail(Detail::kDimension), "N");
}

TEST(OnnxFreeze, ShapeSetsAreCheckedAndDeduplicated) {
  ImportOptions options;
  const std::vector<Shape> first{Shape{1, 8}, Shape{1, 4}};
  const std::vector<Shape> second{Shape{1, 16}, Shape{1, 4}};
  options.shape_sets = {first, second, first};
  const auto imported = two_inputs().import(options);
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->description.shape_sets, (std::vector{first, second}));
  options.shape_sets = {{Shape{1, 8}}};
  EXPECT_EQ(two_inputs().import(options).error().code(), Code::kInvalidArgument);
  options.shape_sets = {{Shape{1, -1}, Shape{1, 4}}};
  EXPECT_EQ(two_inputs().import(options).error().code(), Code::kShapeMismatch);
  options.shape_sets = {{Shape{1, 8}, Shape{1, 5}}};
  EXPECT_THAT(two_inputs().import(options).error().message(), HasSubstr("'b'"));
}

}  // namespace
}  // namespace corelane::onnx
