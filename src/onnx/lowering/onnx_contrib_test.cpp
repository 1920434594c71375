#include "onnx/lowering/onnx_contrib.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using ::testing::HasSubstr;

::onnx::NodeProto contrib_node(const char* op, const std::vector<std::string>& inputs) {
  TestModel m;
  ::onnx::NodeProto node = m.node(op, inputs, {"y"});
  node.set_domain("com.microsoft");
  return node;
}

std::string flaw(const ::onnx::NodeProto& node) {
  FactsTable facts;
  facts.set("rank1", {::onnx::TensorProto::INT64, Shape{1}, {}, {}});
  facts.set("rank2", {::onnx::TensorProto::INT64, Shape{2, 3}, {}, {}});
  const char* text = contrib_flaw(node, facts);
  return text == nullptr ? "" : text;
}

TEST(OnnxContrib, FlagsThatTheEngineIgnoresAreFlaws) {
  auto product = contrib_node("FusedMatMul", {"a", "b"});
  set_attribute(product, "transA", std::int64_t{1});
  EXPECT_EQ(flaw(product), "");
  set_attribute(product, "transBatchB", std::int64_t{1});
  EXPECT_THAT(flaw(product), HasSubstr("transBatchB"));
  auto gemm = contrib_node("FusedGemm", {"a", "b", "c"});
  set_attribute(gemm, "activation", std::string("LeakyRelu"));
  EXPECT_EQ(flaw(gemm), "");
  set_attribute(gemm, "activation", std::string("Sigmoid"));
  EXPECT_THAT(flaw(gemm), HasSubstr("activation"));
  EXPECT_EQ(flaw(contrib_node("MatMulNBits", {"a", "b", "s", "z"})), "");
  EXPECT_THAT(flaw(contrib_node("MatMulNBits", {"a", "b", "s", "", "g"})), HasSubstr("g_idx"));
}

TEST(OnnxContrib, AttentionNeedsItsBiasAndTheUsualScale) {
  auto attention = contrib_node("Attention", {"x", "w", "b"});
  EXPECT_EQ(flaw(attention), "");
  set_attribute(attention, "scale", 0.5F);
  EXPECT_THAT(flaw(attention), HasSubstr("scale"));
  EXPECT_THAT(flaw(contrib_node("Attention", {"x", "w"})), HasSubstr("bias"));
  auto causal = contrib_node("Attention", {"rank1", "w", "b", "rank1"});
  set_attribute(causal, "unidirectional", std::int64_t{1});
  EXPECT_EQ(flaw(causal), "") << "a length for each sequence";
  causal.set_input(0, "rank2");
  EXPECT_THAT(flaw(causal), HasSubstr("starts"));
}

TEST(OnnxContrib, PositionsForAllTokensAreRightAndOneForTheFirstIsNot) {
  EXPECT_EQ(flaw(contrib_node("RotaryEmbedding", {"x", "rank2", "c", "s"})), "");
  EXPECT_THAT(flaw(contrib_node("RotaryEmbedding", {"x", "rank1", "c", "s"})),
              HasSubstr("position"));
  EXPECT_THAT(flaw(contrib_node("RotaryEmbedding", {"x", "open", "c", "s"})),
              HasSubstr("position"));
}

TEST(OnnxContrib, OperatorsThatAreWrongInAnyForm) {
  for (const char* op : {"QLinearAdd", "QLinearConcat", "QLinearSigmoid", "DynamicQuantizeMatMul",
                         "GroupQueryAttention"})
    EXPECT_NE(flaw(contrib_node(op, {"a"})), "") << op;
  EXPECT_EQ(flaw(contrib_node("Gelu", {"a"})), "");
  auto standard = contrib_node("QLinearConv", {"a"});
  standard.clear_domain();
  EXPECT_EQ(flaw(standard), "");
}

TEST(OnnxContrib, AFlawIsTheVerdictOnTheNetwork) {
  TestModel m;
  m.input("a", {2, 3, 4}).input("b", {2, 4, 5}).open_output("y");
  auto& node = m.node("FusedMatMul", {"a", "b"}, {"y"});
  node.set_domain("com.microsoft");
  set_attribute(node, "transBatchA", std::int64_t{1});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_THAT(imported->lowered[0].unfit,
              HasSubstr("node_FusedMatMul1 (com.microsoft.FusedMatMul): the engine ignores"));
}

}  // namespace
}  // namespace corelane::onnx
