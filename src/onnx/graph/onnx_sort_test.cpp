#include <gtest/gtest.h>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

TEST(OnnxSort, NodesThatReadWhatLaterOnesMakeArePutInOrder) {
  TestModel m;
  m.input("x", {1, 4}).output("y", {1, 4});
  m.node("Add", {"a", "b"}, {"y"});
  m.node("Relu", {"x"}, {"a"});
  m.node("Abs", {"x"}, {"b"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(operators_of(given_graph_of(*imported)), "Relu Abs Add");
  const auto again = import_onnx(imported->graph);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(operators_of(given_graph_of(*again)), "Relu Abs Add");
}

TEST(OnnxSort, NodesInOrderStayWhereTheyAreAndSoDoThoseThatAreReady) {
  TestModel m;
  m.input("x", {1, 4}).output("y", {1, 4}).output("z", {1, 4});
  m.node("Neg", {"x"}, {"z"});
  m.node("Abs", {"x"}, {"b"});
  m.node("Exp", {"c"}, {"y"});
  m.node("Relu", {"b"}, {"c"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(operators_of(given_graph_of(*imported)), "Neg Abs Relu Exp");
}

TEST(OnnxSort, WhatASubgraphReadsAndTheNodesInItAreOrderedToo) {
  TestModel m;
  m.input("x", {1, 4}).input("c", {}, ::onnx::TensorProto::BOOL).output("y", {1, 4});
  auto& node = m.node("If", {"c"}, {"y"});
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& a = *node.add_attribute();
    a.set_name(name);
    a.set_type(::onnx::AttributeProto::GRAPH);
    a.mutable_g()->set_name(name);
    auto& last = *a.mutable_g()->add_node();
    last.set_op_type("Neg");
    last.add_input(std::string(name) + "_in");
    last.add_output(std::string(name) + "_out");
    auto& first = *a.mutable_g()->add_node();
    first.set_op_type("Relu");
    first.add_input("later");
    first.add_output(std::string(name) + "_in");
    a.mutable_g()->add_output()->set_name(std::string(name) + "_out");
  }
  m.node("Abs", {"x"}, {"later"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  const ::onnx::GraphProto graph = given_graph_of(*imported);
  EXPECT_EQ(operators_of(graph), "Abs If");
  for (const auto& a : graph.node(1).attribute()) EXPECT_EQ(operators_of(a.g()), "Relu Neg");
}

TEST(OnnxSort, ACircleAndAValueThatNothingMakesAreRefusedByName) {
  TestModel circle;
  circle.input("x", {1, 4}).output("y", {1, 4});
  circle.node("Add", {"x", "b"}, {"a"});
  circle.node("Relu", {"a"}, {"b"});
  circle.node("Neg", {"b"}, {"y"});
  const auto round = circle.import();
  ASSERT_FALSE(round);
  EXPECT_EQ(round.error().code(), Code::kMalformed);
  EXPECT_NE(round.error().message().find("reads 'b', which only a circle of nodes makes"),
            std::string_view::npos)
      << round.error().to_string();
  TestModel missing;
  missing.input("x", {1, 4}).output("y", {1, 4});
  missing.node("Add", {"x", "nowhere"}, {"y"});
  const auto absent = missing.import();
  ASSERT_FALSE(absent);
  EXPECT_NE(absent.error().message().find("reads 'nowhere', which nothing makes"),
            std::string_view::npos)
      << absent.error().to_string();
}

}  // namespace
}  // namespace corelane::onnx
