#include "onnx/shape/onnx_work.h"

#include <gtest/gtest.h>

#include "onnx/onnx_test_model.h"
#include "onnx/shape/onnx_estimate.h"

namespace corelane::onnx {
namespace {

using Steps = std::optional<std::uint64_t>;

Steps steps_of(const TestModel& model, const std::map<std::string, Shape>& inputs = {}) {
  const auto found = estimate_run(model.bytes(), {}, inputs);
  EXPECT_TRUE(found) << found.error().to_string();
  return found ? found->steps : std::nullopt;
}

/// Of one node from x to y; y is as large as a rule says.
Steps steps_of(const std::string& op, const TestModel::Dims& x, const std::string& domain = {}) {
  TestModel m;
  m.input("x", x).open_output("y");
  m.node(op, {"x"}, {"y"}).set_domain(domain);
  return steps_of(m);
}

TEST(OnnxWork, AnElementThatIsReadOrMadeIsEightSteps) {
  EXPECT_EQ(steps_of("Relu", {10, 100}), 16000U);
  EXPECT_EQ(steps_of("Softmax", {10, 100}), 16000U);
}

TEST(OnnxWork, AMultiplyAccumulateIsOneStep) {
  TestModel m;
  m.input("x", {4, 10}).open_output("y");
  m.floats("w", {10, 2}, std::vector<double>(20));
  m.node("MatMul", {"x", "w"}, {"y"});
  EXPECT_EQ(steps_of(m), 4U * 10 * 2 + 4 * 2 * 8);
}

TEST(OnnxWork, EveryStepOfASequenceTakesAllWeights) {
  TestModel m;
  m.input("x", {7, 1, 3}).open_output("y");
  m.floats("w", {1, 8, 3}, std::vector<double>(24));
  m.floats("r", {1, 8, 2}, std::vector<double>(16));
  set_int(m.node("LSTM", {"x", "w", "r"}, {"y"}), "hidden_size", 2);
  EXPECT_EQ(steps_of(m), 7U * (24 + 16 + 8 * 8) + 7 * 2 * 8);
}

TEST(OnnxWork, QuantizedNetworksHaveABoundToo) {
  TestModel m;
  m.input("x", {7, 1, 3}).open_output("y");
  m.typed("w", ::onnx::TensorProto::INT8, {1, 3, 8}, std::vector<double>(24));
  m.typed("r", ::onnx::TensorProto::INT8, {1, 2, 8}, std::vector<double>(16));
  auto& lstm = m.node("DynamicQuantizeLSTM", {"x", "w", "r"}, {"steps", "last"});
  lstm.set_domain("com.microsoft");
  set_int(lstm, "hidden_size", 2);
  m.node("DynamicQuantizeLinear", {"last"}, {"y", "scale", "zero"});
  EXPECT_EQ(steps_of(m), 7U * (24 + 16 + 8 * 8) + (14 + 2) * 8 + (2 + 2 + 1 + 1) * 8);
}

TEST(OnnxWork, TheTableThatAGatherChoosesFromIsNotRead) {
  TestModel m;
  m.input("i", {3}, ::onnx::TensorProto::INT64).open_output("y");
  m.floats("table", {1000, 4}, std::vector<double>(4000));
  m.node("Gather", {"table", "i"}, {"y"});
  EXPECT_EQ(steps_of(m), 3U * 4 * 8);
}

TEST(OnnxWork, AReductionReadsEverything) {
  TestModel m;
  m.input("x", {50, 20}).open_output("y");
  set_int(m.node("ReduceMax", {"x"}, {"y"}), "keepdims", 0);
  EXPECT_EQ(steps_of(m), 1000U * 8 + 8);
}

TEST(OnnxWork, APoolReadsAWindowForEachElement) {
  TestModel m;
  m.input("x", {1, 1, 10, 10}).open_output("y");
  set_attribute(m.node("MaxPool", {"x"}, {"y"}), "kernel_shape", std::vector<std::int64_t>{5, 5});
  EXPECT_EQ(steps_of(m), 36U * (8 + 25));
}

TEST(OnnxWork, ATextIsAThousandSteps) {
  TestModel m;
  m.input("x", {10}).open_output("y", ::onnx::TensorProto::STRING);
  set_int(m.node("Cast", {"x"}, {"y"}), "to", ::onnx::TensorProto::STRING);
  EXPECT_EQ(steps_of(m), 20U * 1024);
}

TEST(OnnxWork, OpenDimensionsCountAsTheyAreGiven) {
  TestModel m;
  m.input("x", {"n", 10}).open_output("y");
  m.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(steps_of(m), 160U);
  EXPECT_EQ(steps_of(m, {{"x", Shape{100, 10}}}), 16000U);
}

TEST(OnnxWork, WhatHasNoBoundLeavesTheNetworkWithoutOne) {
  for (const char* op :
       {"Einsum", "NonMaxSuppression", "Det", "StringNormalizer", "NoSuchOperator"})
    EXPECT_EQ(steps_of(op, {4, 4}), std::nullopt) << op;
  EXPECT_EQ(steps_of("Relu", {4, 4}, "com.example"), std::nullopt);
  TestModel m;
  m.input("x", {std::int64_t{1} << 40, std::int64_t{1} << 40}).open_output("y");
  m.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(steps_of(m), std::nullopt) << "too many to be counted";
}

TEST(OnnxWork, SizesThatComeWithARunLeaveItWithoutABound) {
  TestModel m;
  m.input("x", {1, 4}).input("shape", {2}, ::onnx::TensorProto::INT64).open_output("y");
  m.node("Expand", {"x", "shape"}, {"y"});
  EXPECT_EQ(steps_of(m), std::nullopt);
}

TEST(OnnxWork, ALoopHasNoBoundAndBothBranchesOfAnIfCount) {
  TestModel body;
  body.input("i", {}, ::onnx::TensorProto::INT64).input("on", {}, ::onnx::TensorProto::BOOL);
  body.output("again", {}, ::onnx::TensorProto::BOOL);
  body.node("Identity", {"on"}, {"again"});
  TestModel loop;
  loop.input("x", {4}).input("n", {}, ::onnx::TensorProto::INT64).output("y", {4});
  loop.node("Relu", {"x"}, {"y"});
  set_graph(loop.node("Loop", {"n", ""}, {}), "body", body);
  EXPECT_EQ(steps_of(loop), std::nullopt);

  TestModel branch;
  branch.output("inner", {100});
  branch.node("Relu", {"x"}, {"inner"});
  TestModel choice;
  choice.input("c", {}, ::onnx::TensorProto::BOOL).input("x", {100}).output("y", {100});
  auto& node = choice.node("If", {"c"}, {"y"});
  set_graph(node, "then_branch", branch);
  set_graph(node, "else_branch", branch);
  EXPECT_EQ(steps_of(choice), 2U * 1600 + (1 + 100) * 8);
}

/// A tree ensemble may visit each of its nodes for a row. The model declares no shapes of its
/// outputs.
TEST(OnnxWork, OperatorsOfTablesTakeWhatTheirAttributesListForEachRow) {
  TestModel m;
  m.input("x", {5, 3}).open_output("z");
  auto& trees = m.node("TreeEnsembleClassifier", {"x"}, {"label", "p"});
  trees.set_domain("ai.onnx.ml");
  set_attribute(trees, "nodes_treeids", std::vector<std::int64_t>(1000));
  set_attribute(trees, "classlabels_int64s", std::vector<std::int64_t>{0, 1, 2});
  m.node("Cast", {"p"}, {"z"});
  set_int(*m.graph().mutable_node(1), "to", ::onnx::TensorProto::DOUBLE);
  // For each element of x, which are more than its rows.
  const auto classes = std::uint64_t{15} * 3;
  EXPECT_EQ(steps_of(m), std::uint64_t{5} * 1003 + (15 + 2 * classes) * 8 + 2 * classes * 8);
}

}  // namespace
}  // namespace corelane::onnx
