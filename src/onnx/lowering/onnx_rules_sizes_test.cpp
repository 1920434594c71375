// Rules about integers of shapes, about tensors without elements, and about runs without samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;
using ::testing::HasSubstr;

struct Lowered {
  std::string verdict;
  std::string operators;
};

Lowered lowered(const TestModel& m) {
  const auto imported = m.import();
  EXPECT_TRUE(imported) << imported.error().to_string();
  if (!imported) return {imported.error().to_string(), {}};
  return {imported->lowered[0].unfit, operators_of(graph_of(*imported))};
}

/// y = `op`(x, a constant 2) where `make` makes x of the shape of an input [n, 4].
Lowered of_sizes(const char* op, const std::function<void(TestModel&)>& make) {
  TestModel m;
  m.input("in", {"n", 4}).open_output("y", T::INT64).ints("two", {2});
  m.node("Shape", {"in"}, {"shape"});
  make(m);
  if (std::string_view(op) == "Abs")
    m.node(op, {"x"}, {"y"});
  else
    m.node(op, {"x", "two"}, {"y"});
  return lowered(m);
}

void less_five(TestModel& m) { m.ints("five", {5}).node("Sub", {"shape", "five"}, {"x"}); }

TEST(OnnxSizes, QuotientsAndAmountsBelowZeroAreWrittenOut) {
  EXPECT_EQ(of_sizes("Div", less_five).operators, "Shape Sub Max Div Neg Max Div Sub");
  EXPECT_EQ(of_sizes("Abs", less_five).operators, "Shape Sub Neg Max");
  EXPECT_EQ(of_sizes("Div", less_five).verdict, "");
}

/// [1] came of it, and the Unsqueeze after it made [1, 1].
TEST(OnnxSizes, AQuotientOfScalarsIsAScalar) {
  TestModel m;
  m.input("in", {"n", 4}).open_output("y", T::INT64);
  *m.graph().add_initializer() = make_ints("zero", {}, {0});
  *m.graph().add_initializer() = make_ints("five", {}, {5});
  m.node("Shape", {"in"}, {"shape"});
  m.node("Gather", {"shape", "zero"}, {"rows"});
  m.node("Sub", {"rows", "five"}, {"less"});
  m.node("Div", {"less", "five"}, {"y"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  const ::onnx::GraphProto graph = graph_of(*imported);
  EXPECT_EQ(operators_of(graph), "Shape Gather Sub Max Div Neg Max Div Sub");
  ASSERT_TRUE(graph.output(0).type().tensor_type().has_shape());
  EXPECT_EQ(graph.output(0).type().tensor_type().shape().dim_size(), 0);
}

TEST(OnnxSizes, RangesOfFloatsMayBeWithoutElements) {
  const auto verdict_of = [](const std::string& limit, double step) {
    TestModel m;
    m.input("in", {"n", 4}).input("given", {}).open_output("y");
    m.floats("zero", {}, {0}).floats("five", {}, {5}).floats("step", {}, {step}).ints("first", {0});
    m.node("Shape", {"in"}, {"shape"});
    m.node("Gather", {"shape", "first"}, {"one"});
    m.node("Squeeze", {"one"}, {"n"});
    set_attribute(m.node("Cast", {"n"}, {"size"}), "to", std::int64_t{T::FLOAT});
    m.node("Range", {"zero", limit, "step"}, {"y"});
    return lowered(m).verdict;
  };
  EXPECT_THAT(verdict_of("given", 1), HasSubstr("without elements"));
  EXPECT_THAT(verdict_of("five", -1), HasSubstr("without elements"));
  EXPECT_THAT(verdict_of("size", -1), HasSubstr("without elements"));
  EXPECT_EQ(verdict_of("five", 1), "");
  EXPECT_EQ(verdict_of("size", 1), "");
}

TEST(OnnxSizes, PaddedSizesAreNotBelowZero) {
  TestModel m;
  m.input("in", {"n"}).open_output("y", T::INT64).ints("block", {32});
  m.node("Shape", {"in"}, {"n"});
  m.node("Mod", {"n", "block"}, {"over"});
  m.node("Sub", {"block", "over"}, {"rest"});
  m.node("Mod", {"rest", "block"}, {"pad"});
  m.node("Add", {"n", "pad"}, {"padded"});
  m.node("Div", {"n", "padded"}, {"y"});
  EXPECT_EQ(lowered(m).operators, "Shape Mod Sub Mod Add Div");
  EXPECT_EQ(lowered(m).verdict, "");
}

TEST(OnnxSizes, ThoseFromZeroOnStayAsTheyAre) {
  const auto same = [](TestModel& m) { m.node("Identity", {"shape"}, {"x"}); };
  EXPECT_EQ(of_sizes("Div", same).operators, "Shape Identity Div");
  EXPECT_EQ(of_sizes("Abs", same).operators, "Shape Identity Abs");
  const auto clipped = [](TestModel& m) {
    less_five(m);
    m.graph().mutable_node(1)->set_output(0, "less");
    m.ints("zero", {0}).node("Max", {"less", "zero"}, {"x"});
  };
  EXPECT_EQ(of_sizes("Div", clipped).operators, "Shape Sub Max Div");
}

TEST(OnnxSizes, QuotientsAndAmountsThatAreKnownAreConstants) {
  for (const char* op : {"Div", "Abs"}) {
    TestModel m;
    m.input("in", {2, 4}).open_output("y", T::INT64).ints("two", {2});
    m.node("Shape", {"in"}, {"shape"});
    less_five(m);
    if (std::string_view(op) == "Abs")
      m.node(op, {"x"}, {"y"});
    else
      m.node(op, {"x", "two"}, {"y"});
    EXPECT_EQ(lowered(m).operators, "Shape Sub Identity") << op;
  }
}

TEST(OnnxSizes, IntegersOfARunStayAsTheyAre) {
  TestModel m;
  m.input("x", {"n"}, T::INT64).open_output("y", T::INT64).ints("two", {2});
  m.node("Div", {"x", "two"}, {"y"});
  EXPECT_EQ(lowered(m).operators, "Div");
}

TEST(OnnxSizes, AQuotientByANegativeSizeIsForTheOtherEngine) {
  TestModel m;
  m.input("x", {"n"}).open_output("y", T::INT64);
  m.node("Shape", {"x"}, {"shape"});
  m.node("Neg", {"shape"}, {"below"});
  m.node("Div", {"shape", "below"}, {"y"});
  EXPECT_THAT(lowered(m).verdict, HasSubstr("rounded down"));
}

/// Issue 18: SIGFPE while the engine compiled it.
TEST(OnnxSizes, TheSmallestConstantByMinusOneIsForTheOtherEngine) {
  constexpr double kLowest = std::numeric_limits<std::int32_t>::min();
  for (const auto& [a, b] : {std::pair(kLowest, -1.0), {kLowest, 2.0}, {4.0, -1.0}}) {
    TestModel m;
    m.input("x", {1}).open_output("y");
    m.typed("a", T::INT32, {1}, {a}).typed("b", T::INT32, {1}, {b});
    m.node("Div", {"a", "b"}, {"q"});
    set_attribute(m.node("Cast", {"q"}, {"c"}), "to", std::int64_t{T::FLOAT});
    m.node("Add", {"x", "c"}, {"y"});
    EXPECT_EQ(lowered(m).verdict.empty(), a != kLowest || b != -1)
        << a << " / " << b << ": " << lowered(m).verdict;
  }
}

TEST(OnnxSizes, ConstantsWithoutElementsAreForTheOtherEngine) {
  for (const char* op : {"Add", "Greater", "MatMul", "Where"}) {
    TestModel m;
    m.input("x", {1, 2}).open_output("y", std::string_view(op) == "Greater" ? T::BOOL : T::FLOAT);
    m.floats("empty", {2, 0}, {}).typed("if", T::BOOL, {1}, {1});
    const bool where = std::string_view(op) == "Where";
    m.node(op,
           where ? std::vector<std::string>{"if", "x", "empty"}
                 : std::vector<std::string>{"x", "empty"},
           {"y"});
    EXPECT_THAT(lowered(m).verdict, HasSubstr("without elements")) << op;
  }
  TestModel m;
  m.input("x", {1, 2}).open_output("y").ints("shape", {0, 2});
  m.node("Expand", {"x", "shape"}, {"y"});
  EXPECT_THAT(lowered(m).verdict, HasSubstr("dimension of 0"));
}

Lowered flattened(const TestModel::Dims& dims, std::int64_t axis) {
  TestModel m;
  m.input("x", dims).open_output("y");
  set_attribute(m.node("Flatten", {"x"}, {"y"}), "axis", axis);
  return lowered(m);
}

/// [0, 2] came of [0, 2, 1].
TEST(OnnxSizes, FlatTensorsThatMayBeWithoutElementsKeepTheirSizes) {
  for (const TestModel::Dims& dims : {TestModel::Dims{"n", 2, 1}, {2, "n", 1}, {0, 2, 1}})
    for (const std::int64_t axis : {2, -1, 3})
      EXPECT_EQ(flattened(dims, axis).operators, "Reshape");
  for (const TestModel::Dims& dims : {TestModel::Dims{2, 2, 0}, {"n", 2, "m"}, {"n", 2, 0}})
    EXPECT_THAT(flattened(dims, 2).verdict, HasSubstr("without elements"));
}

TEST(OnnxSizes, OtherFlatTensorsStayAsTheyAre) {
  for (const std::int64_t axis : {0, 1}) {
    EXPECT_EQ(flattened({"n", 2, "m"}, axis).operators, "Flatten");
    EXPECT_EQ(flattened({"n", 2, "m"}, axis).verdict, "");
  }
  for (const TestModel::Dims& dims : {TestModel::Dims{2, 2, 1}, {2, 2, "n"}}) {
    EXPECT_EQ(flattened(dims, 2).operators, "Flatten");
    EXPECT_EQ(flattened(dims, 2).verdict, "");
  }
}

TEST(OnnxSizes, FillingsBeyondThirtyTwoBitsAreForTheOtherEngine) {
  for (const auto& [type, value, fits] : {std::tuple(T::INT64, 2147483647.0, true),
                                          {T::INT64, 2147483648.0, false},
                                          {T::DOUBLE, 0.5, false},
                                          {T::FLOAT, 0.5, true}}) {
    TestModel m;
    m.input("shape", {2}, T::INT64).open_output("y", type);
    auto& attribute = *m.node("ConstantOfShape", {"shape"}, {"y"}).add_attribute();
    attribute.set_name("value");
    attribute.set_type(::onnx::AttributeProto::TENSOR);
    *attribute.mutable_t() = make_values("v", type, {1}, {value});
    EXPECT_EQ(lowered(m).verdict.empty(), fits) << type << " " << value;
  }
}

std::string verdict_on_top(const TestModel::Dims& dims, std::int64_t k, bool quantized) {
  TestModel m;
  m.input("in", dims, quantized ? T::UINT8 : T::FLOAT).open_output("v").ints("k", {k});
  m.open_output("i", T::INT64);
  m.typed("scale", T::FLOAT, {}, {0.5}).typed("zero", T::UINT8, {}, {0});
  if (quantized)
    m.node("DequantizeLinear", {"in", "scale", "zero"}, {"x"});
  else
    m.node("Identity", {"in"}, {"x"});
  m.node("Relu", {"x"}, {"r"});
  m.node("TopK", {"r", "k"}, {"v", "i"});
  return lowered(m).verdict;
}

TEST(OnnxSizes, PlacesOfManyEqualValuesAreForTheOtherEngine) {
  EXPECT_EQ(verdict_on_top({1, 1000}, 65, true), "");
  EXPECT_THAT(verdict_on_top({1, 1000}, 66, true), HasSubstr("equal values"));
  EXPECT_THAT(verdict_on_top({1, "n"}, 2, true), HasSubstr("equal values"));
  EXPECT_EQ(verdict_on_top({1, "n"}, 1, true), "");
  EXPECT_EQ(verdict_on_top({1, 100000}, 1000, false), "") << "floats are seldom equal";
}

TEST(OnnxSizes, ANumberOfValuesThatComesWithARunMayBeZero) {
  TestModel m;
  m.input("x", {5}).input("k", {1}, T::INT64).open_output("v");
  m.node("TopK", {"x", "k"}, {"v", ""});
  EXPECT_THAT(lowered(m).verdict, HasSubstr("comes with the run"));
}

TEST(OnnxSizes, PartsThatMayBeUnevenAreForTheOtherEngine) {
  for (const auto& [dims, fits] : {std::pair(TestModel::Dims{6, 2}, true),
                                   {TestModel::Dims{7, 2}, false},
                                   {TestModel::Dims{"n", 2}, false}}) {
    TestModel m(18);
    m.input("x", dims).open_output("a").open_output("b").open_output("c");
    set_attribute(m.node("Split", {"x"}, {"a", "b", "c"}), "num_outputs", std::int64_t{3});
    EXPECT_EQ(lowered(m).verdict.empty(), fits) << dims[0].value;
  }
}

std::string verdict_on_steps(const char* op, const TestModel::Dims& dims, bool fixed) {
  TestModel m;
  m.input("x", dims).open_output("y");
  const std::int64_t gates = std::string_view(op) == "LSTM"  ? 4
                             : std::string_view(op) == "GRU" ? 3
                                                             : 1;
  const std::vector<double> ones(static_cast<std::size_t>(gates), 1);
  if (fixed)
    m.floats("w", {1, gates, 1}, ones);
  else
    m.input("w", {1, gates, 1});
  m.floats("r", {1, gates, 1}, ones);
  set_attribute(m.node(op, {"x", "w", "r"}, {"y"}), "hidden_size", std::int64_t{1});
  return lowered(m).verdict;
}

/// Issue 18: SIGFPE, while the engine compiled the first and in a run of the second.
TEST(OnnxSizes, RecurrencesThatMayHaveNoSamplesAreForTheOtherEngine) {
  for (const char* op : {"LSTM", "GRU", "RNN"}) {
    EXPECT_THAT(verdict_on_steps(op, {3, 0, 1}, true), HasSubstr("no samples")) << op;
    EXPECT_THAT(verdict_on_steps(op, {3, "n", 1}, false), HasSubstr("come with the run")) << op;
    EXPECT_EQ(verdict_on_steps(op, {3, "n", 1}, true), "") << op;
    EXPECT_EQ(verdict_on_steps(op, {3, 2, 1}, false), "") << op;
  }
}

/// Issue 18: SIGFPE.
TEST(OnnxSizes, TransformsOfNoLengthAreForTheOtherEngine) {
  for (const std::int64_t length : {0, -5, 4}) {
    TestModel m(20);
    m.input("x", {1, 8, 1}).open_output("y");
    *m.graph().add_initializer() = make_ints("length", {}, {length});
    m.node("DFT", {"x", "length"}, {"y"});
    EXPECT_EQ(lowered(m).verdict.empty(), length > 0) << length;
  }
  TestModel m(20);
  m.input("x", {1, 8, 1}).input("length", {}, T::INT64).open_output("y");
  m.node("DFT", {"x", "length"}, {"y"});
  EXPECT_THAT(lowered(m).verdict, HasSubstr("input 1"));
}

TEST(OnnxSizes, FloatsToBoolAreThoseThatAreNotZero) {
  TestModel m;
  m.input("x", {4}).output("y", {4}, T::BOOL);
  set_attribute(m.node("Cast", {"x"}, {"y"}), "to", std::int64_t{T::BOOL});
  EXPECT_EQ(lowered(m).operators, "Equal Not");
}

/// Its importer asks for the largest number of the type, and reads what is not there.
TEST(TypeFlaws, WhatHasNoLargestNumberIsForTheOtherEngine) {
  const auto verdict = [](std::int32_t type, const std::vector<std::string>& inputs) {
    TestModel m(22);
    m.input("x", {2}, type).output("y", {2}, type).node("Clip", inputs, {"y"});
    return lowered(m).verdict;
  };
  EXPECT_EQ(verdict(T::FLOAT, {"x"}), "");
  EXPECT_EQ(verdict(T::INT8, {"x", "", "x"}), "");
  EXPECT_THAT(verdict(T::BOOL, {"x", "x"}), HasSubstr("(Clip): a type without a largest number"));
  EXPECT_EQ(verdict(T::BOOL, {"x", "x", "x"}), "");
  for (const std::int32_t narrow : {T::INT4, T::UINT4})
    EXPECT_THAT(verdict(narrow, {"x"}), HasSubstr("(Clip): numbers of less than a byte"));
}

}  // namespace
}  // namespace corelane::onnx
