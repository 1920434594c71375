#include "onnx/lowering/onnx_quantized.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

std::vector<std::string> operators(const ::onnx::ModelProto& model) {
  std::vector<std::string> ops;
  for (const auto& node : model.graph().node()) ops.push_back(node.op_type());
  return ops;
}

std::string findings(const ImportedModel& imported) {
  std::string text;
  for (const ImportFinding& finding : imported.description.findings)
    text += finding.node + ": " + finding.text + "\n";
  return text;
}

/// x -> Relu -> pair -> Sigmoid -> y
TestModel signed_pair() {
  TestModel m;
  m.input("x", {1, 4}).output("y", {1, 4});
  m.floats("s", {}, {0.5}).typed("z", T::INT8, {}, {-100});
  m.node("Relu", {"x"}, {"r"});
  m.node("QuantizeLinear", {"r", "s", "z"}, {"q"});
  m.node("DequantizeLinear", {"q", "s", "z"}, {"d"});
  m.node("Sigmoid", {"d"}, {"y"});
  return m;
}

/// (a, b) -> Concat -> Relu -> pair -> Sigmoid -> y
TestModel pair_after_concat() {
  TestModel m;
  m.input("a", {1, 4}).input("b", {1, 4}).output("y", {1, 8});
  m.floats("s", {}, {0.5}).typed("z", T::UINT8, {}, {3});
  m.node("Concat", {"a", "b"}, {"c"}).add_attribute()->set_name("axis");
  auto& axis = *m.graph().mutable_node(0)->mutable_attribute(0);
  axis.set_type(::onnx::AttributeProto::INT);
  axis.set_i(1);
  m.node("Relu", {"c"}, {"r"});
  m.node("QuantizeLinear", {"r", "s", "z"}, {"q"});
  m.node("DequantizeLinear", {"q", "s", "z"}, {"d"});
  m.node("Sigmoid", {"d"}, {"y"});
  return m;
}

TEST(OnnxQuantized, SignedPairsBecomeUnsignedOnes) {
  const auto imported = signed_pair().import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  const ::onnx::ModelProto model = lowered_model_of(*imported);
  const GraphIndex index(model.graph());
  const auto& quantize = *index.producer("q");
  EXPECT_EQ(quantize.input(2), index.producer("d")->input(2));
  const auto* zero = index.constant(quantize.input(2));
  ASSERT_NE(zero, nullptr);
  EXPECT_EQ(zero->data_type(), T::UINT8);
  EXPECT_THAT(read_ints(*zero, imported->constants).value(), testing::ElementsAre(28));
  EXPECT_THAT(findings(*imported), testing::HasSubstr("1 signed 8-bit pairs"));
}

TEST(OnnxQuantized, TheBoundaryIsDescribedAsTheModelHasIt) {
  TestModel m;
  m.input("x", {1, 4}).output("y", {1, 4});
  m.floats("s", {}, {0.5}).typed("z", T::INT8, {}, {-100});
  m.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  m.node("DequantizeLinear", {"q", "s", "z"}, {"y"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->description.inputs[0].quant_dtype, DType::kI8);
  EXPECT_EQ(imported->description.outputs[0].quant, Quant::affine(0.5F, -100));
}

TEST(OnnxQuantized, IntegersThatAreReadAsIntegersStay) {
  TestModel m = signed_pair();
  m.output("i", {1, 4}, T::INT32);
  m.node("Cast", {"q"}, {"i"}).add_attribute()->set_name("to");
  auto& to = *m.graph().mutable_node(m.graph().node_size() - 1)->mutable_attribute(0);
  to.set_type(::onnx::AttributeProto::INT);
  to.set_i(T::INT32);
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  const ::onnx::ModelProto model = lowered_model_of(*imported);
  EXPECT_EQ(GraphIndex(model.graph()).producer("q")->input(2), "z");
}

TEST(OnnxQuantized, IntegersThatTheModelReturnsStay) {
  TestModel m = signed_pair();
  m.output("q", {1, 4}, T::INT8);
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  const ::onnx::ModelProto model = lowered_model_of(*imported);
  EXPECT_EQ(GraphIndex(model.graph()).producer("q")->input(2), "z");
}

TEST(OnnxQuantized, PairsAfterAConcatComeBeforeIt) {
  const auto imported = pair_after_concat().import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  const ::onnx::ModelProto model = lowered_model_of(*imported);
  EXPECT_THAT(operators(model), testing::ElementsAre("Relu", "QuantizeLinear", "DequantizeLinear",
                                                     "Relu", "QuantizeLinear", "DequantizeLinear",
                                                     "Concat", "Identity", "Sigmoid"));
  const GraphIndex index(model.graph());
  EXPECT_EQ(index.producer("d")->op_type(), "Identity");
  EXPECT_EQ(int_attribute(*index.producer(index.producer("d")->input(0)), "axis", 0), 1);
  EXPECT_EQ(model.graph().node(0).input(0), "a");
  EXPECT_EQ(model.graph().node(3).input(0), "b");
  EXPECT_THAT(findings(*imported), testing::HasSubstr("1 pairs"));
}

TEST(OnnxQuantized, AConcatThatIsReadElsewhereStaysToo) {
  TestModel m = pair_after_concat();
  m.output("w", {1, 8});
  m.node("Sigmoid", {"c"}, {"w"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  const std::vector<std::string> ops = operators(lowered_model_of(*imported));
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Concat"), 2);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Relu"), 2);
}

TEST(OnnxQuantized, AConcatOfAConcatIsTakenApart) {
  TestModel m = pair_after_concat();
  // a is itself a Concat.
  m.graph().mutable_node(0)->set_input(0, "e");
  auto& inner = m.node("Concat", {"a", "b"}, {"e"});
  inner.add_attribute()->CopyFrom(m.graph().node(0).attribute(0));
  inner.mutable_attribute(0)->set_i(0);
  m.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  // In order: the new node goes first.
  for (int i = m.graph().node_size() - 1; i > 0; --i)
    m.graph().mutable_node()->SwapElements(i, i - 1);
  m.graph().mutable_node(1)->mutable_attribute(0)->set_i(1);
  m.graph().mutable_node(1)->set_input(1, "e");
  m.graph().clear_output();
  m.open_output("y");
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  const ::onnx::ModelProto model = lowered_model_of(*imported);
  const GraphIndex index(model.graph());
  for (const auto& node : model.graph().node()) {
    if (node.op_type() != "QuantizeLinear") continue;
    const auto* before = index.producer(node.input(0));
    ASSERT_TRUE(before != nullptr && before->op_type() == "Relu");
    const auto* source = index.producer(before->input(0));
    EXPECT_TRUE(source == nullptr || source->op_type() != "Concat") << node.name();
  }
}

TEST(OnnxQuantized, ScalesPerChannelStayBehindTheConcat) {
  TestModel m = pair_after_concat();
  m.floats("ss", {8}, {1, 1, 1, 1, 1, 1, 1, 1})
      .typed("zz", T::UINT8, {8}, {0, 0, 0, 0, 0, 0, 0, 0});
  for (int i : {2, 3}) {
    m.graph().mutable_node(i)->set_input(1, "ss");
    m.graph().mutable_node(i)->set_input(2, "zz");
  }
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(operators(lowered_model_of(*imported)).front(), "Concat");
}

TEST(OnnxQuantized, ARewrittenValueIsDeclaredUnsigned) {
  TestModel m = signed_pair();
  auto& info = *m.graph().add_value_info();
  info.set_name("q");
  info.mutable_type()->mutable_tensor_type()->set_elem_type(T::INT8);
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  const ::onnx::ModelProto model = lowered_model_of(*imported);
  ASSERT_EQ(model.graph().value_info_size(), 1);
  EXPECT_EQ(model.graph().value_info(0).type().tensor_type().elem_type(), T::UINT8);
}

TEST(OnnxQuantized, NodesWithoutInputsAreRefused) {
  for (const char* op : {"Relu", "Identity", "Concat"}) {
    TestModel m = signed_pair();
    m.graph().mutable_node(0)->set_op_type(op);
    m.graph().mutable_node(0)->clear_input();
    const auto imported = m.import();
    ASSERT_FALSE(imported) << op;
    EXPECT_EQ(imported.error().code(), Code::kMalformed);
    // Not even without the check before.
    ::onnx::GraphProto graph = m.graph();
    std::vector<ImportFinding> found;
    rewrite_quantized(graph, {}, found);
  }
}

/// (a, ... a) -> Concat -> Relus -> pairs, all of the same Concat.
::onnx::GraphProto wide(int parts, int relus, int pairs) {
  TestModel m;
  m.floats("s", {}, {0.5}).typed("z", T::UINT8, {}, {3});
  m.node("Concat", std::vector<std::string>(static_cast<std::size_t>(parts), "a"), {"r0"});
  for (int k = 0; k < relus; ++k)
    m.node("Relu", {"r" + std::to_string(k)}, {"r" + std::to_string(k + 1)});
  for (int k = 0; k < pairs; ++k) {
    const std::string n = std::to_string(k);
    m.node("QuantizeLinear", {"r" + std::to_string(relus), "s", "z"}, {"q" + n});
    m.node("DequantizeLinear", {"q" + n, "s", "z"}, {"d" + n});
  }
  return m.graph();
}

TEST(OnnxQuantized, ChainsOfAnyLengthAreNotFollowed) {
  ::onnx::GraphProto graph = wide(2, 8, 1);
  std::vector<ImportFinding> found;
  rewrite_quantized(graph, {}, found);
  EXPECT_EQ(found.size(), 1U);
  graph = wide(2, 9, 1);
  rewrite_quantized(graph, {}, found);
  EXPECT_EQ(found.size(), 1U);
}

TEST(OnnxQuantized, WhatIsMadeStaysInProportionToTheModel) {
  ::onnx::GraphProto graph = wide(2000, 8, 500);
  const std::size_t before = graph.ByteSizeLong();
  std::vector<ImportFinding> found;
  rewrite_quantized(graph, {}, found);
  // Written out, ten million nodes.
  EXPECT_LT(graph.ByteSizeLong(), 16 * before + (std::size_t{4} << 20));
}

}  // namespace
}  // namespace corelane::onnx
