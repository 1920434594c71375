#include "corelane/onnx/onnx_lowering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

/// x -> Dropout -> pair of signed 8-bit integers -> MyOp -> y: a rule, the pass, a host operator.
Result<ImportedModel> mixed() {
  TestModel m;
  m.input("x", {1, 4}).output("y", {1, 4});
  m.floats("s", {}, {0.5}).typed("z", T::INT8, {}, {-100});
  m.node("Dropout", {"x"}, {"r"});
  m.node("QuantizeLinear", {"r", "s", "z"}, {"q"});
  m.node("DequantizeLinear", {"q", "s", "z"}, {"d"});
  m.node("MyOp", {"d"}, {"y"}).set_domain("vendor");
  ImportOptions options;
  options.custom_operators = {"MyOp"};
  return m.import(options);
}

TEST(OnnxLowering, TheNetworkIsKeptAsItWasGiven) {
  const auto imported = mixed();
  ASSERT_TRUE(imported) << imported.error().to_string();
  const ::onnx::GraphProto given = given_graph_of(*imported);
  EXPECT_EQ(operators_of(given), "Dropout QuantizeLinear DequantizeLinear MyOp");
  EXPECT_EQ(given.node(1).input(2), "z");
  EXPECT_EQ(imported->description.node_count, 4U);
  const ::onnx::GraphProto lowered = graph_of(*imported);
  EXPECT_EQ(operators_of(lowered), "Identity QuantizeLinear DequantizeLinear MyOp");
  EXPECT_NE(lowered.node(1).input(2), "z");
  // The host operator's outputs are described in both.
  for (const auto* graph : {&given, &lowered})
    EXPECT_EQ(find_attribute(graph->node(3), "corelane_output_shapes")->strings(0), "1,4");
}

TEST(OnnxLowering, LoweringAgainMakesTheSameForm) {
  const auto imported = mixed();
  ASSERT_TRUE(imported) << imported.error().to_string();
  const auto again = lower_onnx(imported->graph, imported->constants, lowerings()[0]);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->tag, imported->lowered[0].tag);
  EXPECT_EQ(lowered_model_of({again->graph, {}, {}, {}}).SerializeAsString(),
            lowered_model_of(*imported).SerializeAsString());
}

TEST(OnnxLowering, ALoweredNetworkIsNotChangedAgain) {
  // Program files of before hold one.
  const auto imported = mixed();
  ASSERT_TRUE(imported) << imported.error().to_string();
  const auto again = lower_onnx(imported->lowered[0].graph, imported->constants, lowerings()[0]);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_TRUE(again->graph.empty());
}

TEST(OnnxLowering, ANetworkThatTheEngineReadsHasAnEmptyForm) {
  TestModel m;
  m.input("x", {1, 4}).output("y", {1, 4});
  m.node("Relu", {"x"}, {"y"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  ASSERT_EQ(imported->lowered.size(), lowerings().size());
  EXPECT_EQ(imported->lowered[0].tag, lowerings()[0].tag());
  EXPECT_TRUE(imported->lowered[0].graph.empty());
}

TEST(OnnxLowering, NewConstantsLieInTheLoweredGraphAndOthersAreShared) {
  TestModel m;
  m.input("x", {1, 64, 1}).output("f", {1, 64, 2}).output("y", {1, 512, 1});
  m.floats("w", {1, 512, 1}, std::vector<double>(512, 1.0));
  m.node("DFT", {"x"}, {"f"});
  m.node("Dropout", {"w"}, {"y"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->constants.size(), 2048U);
  std::size_t inside = 0;
  const ::onnx::GraphProto graph = graph_of(*imported);
  for (const auto& tensor : graph.initializer()) {
    inside += tensor.raw_data().size();
    if (tensor.name() == "w") EXPECT_EQ(tensor.external_data(0).value(), kConstantsLocation);
  }
  EXPECT_GE(inside, 64U * 64 * sizeof(float)) << "the matrix of the transform";
}

TEST(OnnxLowering, AnEngineIsKnownByTheFirstWordOfItsName) {
  ASSERT_NE(lowering_for("OpenVINO 2026.4.1"), nullptr);
  EXPECT_EQ(lowering_for("OpenVINO 2026.4.1")->engine, "openvino");
  EXPECT_EQ(lowering_for("openvino"), lowering_for("OpenVINO 2027.0"));
  for (const char* other : {"", "none", "OpenVINO2", "open vino"})
    EXPECT_EQ(lowering_for(other), nullptr) << other;
}

TEST(OnnxLowering, BytesAndRevisionsThatItCannotServeAreRefused) {
  EXPECT_EQ(lower_onnx(as_byte_span("ONNX"), {}, lowerings()[0]).error().code(), Code::kMalformed);
  TestModel m;
  m.input("x", {4}).output("y", {4});
  m.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(lower_onnx(m.bytes(), {}, Lowering{"openvino", 0}).error().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace corelane::onnx
