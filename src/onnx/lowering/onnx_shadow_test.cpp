#include "onnx/lowering/onnx_shadow.h"

#include <gtest/gtest.h>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

/// What each node reads and makes, "Add(a,b)->c", those of inner graphs in brackets.
std::string text_of(const ::onnx::GraphProto& graph) {
  std::string text;
  for (const auto& node : graph.node()) {
    text += (text.empty() ? "" : " ") + node.op_type() + "(";
    for (const auto& in : node.input()) text += in + ",";
    text += ")->";
    for (const auto& out : node.output()) text += out + ",";
    for (const auto* inner : subgraphs(node)) {
      text += "[";
      for (const auto& in : inner->input()) text += in.name() + ",";
      text += "| " + text_of(*inner) + " |";
      for (const auto& out : inner->output()) text += out.name() + ",";
      text += "]";
    }
  }
  return text;
}

TEST(OnnxShadow, AnInputOfABodyThatHidesAnOuterValueIsRenamed) {
  TestModel body;
  body.input("i", {}).input("c", {}).input("x", {2}).output("c", {}).output("y", {2});
  body.node("Add", {"x", "w"}, {"y"});
  TestModel m;
  m.input("x", {2}).input("n", {}).output("out", {2}).floats("w", {2}, {1, 2});
  set_graph(m.node("Loop", {"n", "", "x"}, {"out"}), "body", body);
  std::vector<ImportFinding> findings;
  rename_shadows(m.graph(), findings);
  EXPECT_EQ(text_of(m.graph()), "Loop(n,,x,)->out,[i,c,x/inner0,| Add(x/inner0,w,)->y, |c,y,]");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].op, "Loop");
}

TEST(OnnxShadow, ANameThatIsMadeInsideHidesTheOuterOneFromThereOn) {
  TestModel branch;
  branch.open_output("x");
  branch.node("Neg", {"x"}, {"t"});
  branch.node("Relu", {"t"}, {"x"});
  TestModel m;
  m.input("x", {2}).input("b", {}).open_output("y");
  set_graph(m.node("If", {"b"}, {"y"}), "then_branch", branch);
  std::vector<ImportFinding> findings;
  rename_shadows(m.graph(), findings);
  EXPECT_EQ(text_of(m.graph()), "If(b,)->y,[| Neg(x,)->t, Relu(t,)->x/inner0, |x/inner0,]");
}

TEST(OnnxShadow, GraphsBelowReadTheNewNameUnlessTheyHideItAgain) {
  TestModel deep;
  deep.open_output("z");
  deep.node("Neg", {"x"}, {"z"});
  TestModel hiding;
  hiding.input("x", {2}).open_output("z2");
  hiding.node("Abs", {"x"}, {"z2"});
  TestModel body;
  body.input("x", {2}).open_output("u");
  set_graph(body.node("If", {"x"}, {"u"}), "then_branch", deep);
  set_graph(body.node("Loop", {"x"}, {"v"}), "body", hiding);
  TestModel m;
  m.input("x", {2}).open_output("y");
  set_graph(m.node("Scan", {"x"}, {"y"}), "body", body);
  std::vector<ImportFinding> findings;
  rename_shadows(m.graph(), findings);
  EXPECT_EQ(text_of(m.graph()),
            "Scan(x,)->y,[x/inner0,| If(x/inner0,)->u,[| Neg(x/inner0,)->z, |z,] "
            "Loop(x/inner0,)->v,[x/inner1,| Abs(x/inner1,)->z2, |z2,] |u,]");
}

TEST(OnnxShadow, BranchesWithTheSameNamesAreLeftAlone) {
  TestModel branch;
  branch.open_output("t");
  branch.node("Neg", {"x"}, {"t"});
  TestModel m;
  m.input("x", {2}).input("b", {}).open_output("y");
  auto& node = m.node("If", {"b"}, {"y"});
  set_graph(node, "then_branch", branch);
  set_graph(node, "else_branch", branch);
  const std::string before = text_of(m.graph());
  std::vector<ImportFinding> findings;
  rename_shadows(m.graph(), findings);
  EXPECT_EQ(text_of(m.graph()), before);
  EXPECT_TRUE(findings.empty());
}

}  // namespace
}  // namespace corelane::onnx
