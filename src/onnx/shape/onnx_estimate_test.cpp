#include "onnx/shape/onnx_estimate.h"

#include <gtest/gtest.h>

#include <limits>

#include "onnx/graph/onnx_held_model.h"
#include "onnx/onnx_import_from.h"
#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

/// Without the bytes of the file.
RunEstimate estimate_of(const TestModel& model) {
  const ByteVector bytes = model.bytes();
  auto found = estimate_run(bytes, {});
  EXPECT_TRUE(found) << found.error().to_string();
  RunEstimate estimate = found.value_or(RunEstimate());
  estimate.bytes -= std::min<std::uint64_t>(estimate.bytes, bytes.size());
  return estimate;
}

TEST(OnnxEstimate, WhatAnImportHasReadIsNotReadAgain) {
  TestModel m;
  m.input("x", {-1, 3}).output("y", {-1, 3});
  m.node("Relu", {"x"}, {"a"});
  m.node("Relu", {"a"}, {"y"});
  const ByteVector bytes = m.bytes();
  std::shared_ptr<HeldModel> read;
  const auto imported = import_from(bytes, external_data_of({}, {}), {}, read);
  ASSERT_TRUE(imported) << imported.error().to_string();
  ASSERT_NE(read, nullptr);
  const ByteSpan graph = imported->graph;
  const std::map<std::string, Shape> shapes = {{"x", Shape{100, 3}}};
  const auto again = estimate_run(graph, {}, shapes).value();
  const auto once = estimate_run(read, graph.size(), {}, shapes).value();
  EXPECT_EQ(once.bytes, again.bytes);
  EXPECT_EQ(once.steps, again.steps);
  EXPECT_EQ(once.node, again.node);
  EXPECT_GT(once.bytes, 2400U);
}

TEST(OnnxEstimate, CountsWhatIsNeededAtTheSameTime) {
  TestModel m;
  m.input("x", {1000}).output("y", {1000});
  m.node("Relu", {"x"}, {"a"});
  m.node("Relu", {"a"}, {"b"});
  m.node("Relu", {"b"}, {"y"});
  // The input, and of the rest two at a time.
  EXPECT_EQ(estimate_of(m).bytes, 12000U);
}

TEST(OnnxEstimate, NamesTheNodeThatMakesTheLargestValue) {
  TestModel m;
  m.input("x", {1, 8}).output("y", {1, 8});
  m.ints("shape", {1000, 8});
  m.node("Expand", {"x", "shape"}, {"wide"});
  auto& reduce = m.node("ReduceMax", {"wide"}, {"y"});
  set_attribute(reduce, "axes", std::vector<std::int64_t>{0});
  const RunEstimate estimate = estimate_of(m);
  EXPECT_EQ(estimate.op, "Expand");
  EXPECT_EQ(estimate.node, "node_Expand1");
  EXPECT_GE(estimate.bytes, 32000U);
}

TEST(OnnxEstimate, AProductWithoutEndIsTheLargestNumber) {
  TestModel m;
  m.input("x", {1}).open_output("y");
  m.ints("shape", {1LL << 40, 1LL << 40});
  m.node("Expand", {"x", "shape"}, {"y"});
  const ByteVector bytes = m.bytes();
  EXPECT_EQ(estimate_run(bytes, {})->bytes, std::numeric_limits<std::uint64_t>::max());
}

TEST(OnnxEstimate, OpenDimensionsCountAsOne) {
  TestModel m;
  m.input("x", {"n", 1000}).output("y", {"n", 1000});
  m.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(estimate_of(m).bytes, 8000U);
}

/// Bug of issue 18: OpenVINO computed with them forever while it read the network.
TEST(OnnxEstimate, AChainThatDoublesIsFollowedFromAnOpenDimension) {
  TestModel m;
  m.input("x", {"n"}).open_output("y");
  std::string last = "x";
  for (int i = 0; i < 40; ++i) {
    const std::string next = i == 39 ? "y" : "v" + std::to_string(i);
    set_attribute(m.node("Concat", {last, last}, {next}), "axis", std::int64_t{0});
    last = next;
  }
  EXPECT_EQ(estimate_of(m).bytes, (6ULL << 40) + 4);
}

TEST(OnnxEstimate, BranchesCountWithWhatIsAroundThem) {
  TestModel m;
  m.input("c", {}, ::onnx::TensorProto::BOOL).input("x", {1000}).output("y", {1000});
  auto& node = m.node("If", {"c"}, {"y"});
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& a = *node.add_attribute();
    a.set_name(name);
    a.set_type(::onnx::AttributeProto::GRAPH);
    auto& relu = *a.mutable_g()->add_node();
    relu.set_op_type("Relu");
    relu.add_input("x");
    relu.add_output("inner");
    a.mutable_g()->add_output()->set_name("inner");
  }
  // The input, the node's output, and that of one branch.
  EXPECT_EQ(estimate_of(m).bytes, 12001U);
}

}  // namespace
}  // namespace corelane::onnx
