#include "corelane/onnx/onnx_lowering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string_view>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;
using ::testing::HasSubstr;

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
  // Earlier program files hold one.
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

/// The engine has no CumProd, and of an open shape there is no other form.
TestModel unfit_model(const std::string& name) {
  TestModel m(26);
  m.input("x", {"n"}).output("y", {"n"}).ints("axis", {0});
  m.node("CumProd", {"x", "axis"}, {"y"}).set_name(name);
  m.node("CumProd", {"x", "axis"}, {"z"});
  return m;
}

TEST(OnnxLowering, WhatTheEngineGetsWrongIsAVerdictThatNamesTheFirstSuchNode) {
  const auto imported = unfit_model("a").import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  const std::string& unfit = imported->lowered[0].unfit;
  EXPECT_THAT(unfit, ::testing::StartsWith("node a (CumProd): "));
  EXPECT_TRUE(imported->lowered[0].graph.empty());
  ASSERT_EQ(imported->description.findings.size(), 2U) << "one for each node";
  EXPECT_EQ(imported->description.findings[0].kind, ImportFinding::Kind::kWarning);
  const auto again = lower_onnx(imported->graph, imported->constants, lowerings()[0]);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->unfit, unfit);
}

/// One node that reads x, of these dimensions, and what it is given besides.
std::string verdict_on(const std::string& op, const TestModel::Dims& dims,
                       const std::function<void(TestModel&, ::onnx::NodeProto&)>& more = {},
                       std::int32_t type = ::onnx::TensorProto::FLOAT, std::int64_t opset = 18) {
  TestModel m(opset);
  m.input("x", dims, type).open_output("y", type);
  ::onnx::NodeProto node;
  node.set_op_type(op);
  node.add_input("x");
  node.add_output("y");
  if (more) more(m, node);
  *m.graph().add_node() = node;
  const auto imported = m.import();
  return imported ? imported->lowered[0].unfit : imported.error().to_string();
}

TEST(OnnxLowering, PoolsThatRoundUpAreJudgedByTheirPadding) {
  using Ints = std::vector<std::int64_t>;
  const auto pool = [](const Ints& pads, const Ints& strides) {
    return [=](TestModel&, ::onnx::NodeProto& node) {
      set_attribute(node, "kernel_shape", Ints{2, 2});
      set_attribute(node, "pads", pads);
      set_attribute(node, "strides", strides);
      set_attribute(node, "ceil_mode", std::int64_t{1});
      if (node.op_type() == "AveragePool")
        set_attribute(node, "count_include_pad", std::int64_t{1});
    };
  };
  const TestModel::Dims open{"n", 2, 5, 5}, fixed{1, 2, 5, 5};
  EXPECT_THAT(verdict_on("MaxPool", open, pool({0, 0, 1, 1}, {2, 2})), HasSubstr("ceil_mode"));
  EXPECT_THAT(verdict_on("MaxPool", open, pool({0, 0, 0, 0}, {3, 3})), HasSubstr("ceil_mode"));
  EXPECT_EQ(verdict_on("MaxPool", open, pool({0, 0, 0, 0}, {2, 2})), "");
  EXPECT_EQ(verdict_on("MaxPool", fixed, pool({0, 0, 1, 1}, {2, 2})), "");
  EXPECT_THAT(verdict_on("AveragePool", fixed, pool({1, 1, 1, 1}, {2, 2})),
              HasSubstr("count_include_pad"));
}

TEST(OnnxLowering, WhatTheEngineDoesNotReadIsAVerdict) {
  EXPECT_THAT(verdict_on("Gather", {3, 4},
                         [](TestModel& m, ::onnx::NodeProto& node) {
                           m.ints("places", {});
                           node.add_input("places");
                         }),
              HasSubstr("without elements"));
  EXPECT_THAT(verdict_on("ConvTranspose", {"n", 2, 5, 5},
                         [](TestModel& m, ::onnx::NodeProto& node) {
                           m.floats("w", {2, 1, 3, 3}, std::vector<double>(18, 1));
                           node.add_input("w");
                           set_attribute(node, "auto_pad", std::string("SAME_UPPER"));
                           set_attribute(node, "strides", std::vector<std::int64_t>{2, 2});
                         }),
              HasSubstr("auto_pad"));
  EXPECT_THAT(verdict_on(
                  "Div", {1, 4},
                  [](TestModel& m, ::onnx::NodeProto& node) {
                    m.typed("two", ::onnx::TensorProto::UINT8, {1}, {2});
                    node.add_input("two");
                  },
                  ::onnx::TensorProto::UINT8),
              HasSubstr("bytes"));
  EXPECT_THAT(verdict_on("LSTM", {3, 1, 2},
                         [](TestModel& m, ::onnx::NodeProto& node) {
                           m.floats("w", {1, 8, 2}, std::vector<double>(16, 1));
                           m.floats("r", {1, 8, 2}, std::vector<double>(16, 1));
                           node.add_input("w");
                           node.add_input("r");
                           set_attribute(node, "hidden_size", std::int64_t{2});
                           set_attribute(node, "input_forget", std::int64_t{1});
                         }),
              HasSubstr("input_forget"));
}

TEST(OnnxLowering, NormAlongNoDimensionIsAnAbsoluteValue) {
  for (const char* op : {"ReduceL1", "ReduceL2"}) {
    TestModel m(18);
    m.input("x", {1, 4}).output("y", {1, 4});
    set_attribute(m.node(op, {"x"}, {"y"}), "noop_with_empty_axes", std::int64_t{1});
    const auto imported = m.import();
    ASSERT_TRUE(imported) << imported.error().to_string();
    const auto model = lowered_model_of(*imported);
    ASSERT_EQ(model.graph().node_size(), 1) << op;
    EXPECT_EQ(model.graph().node(0).op_type(), "Abs");
  }
}

TEST(OnnxLowering, TheWarningStaysWhereNoVerdictIsWanted) {
  ImportOptions options;
  options.refuse_known_wrong = false;
  const auto imported = unfit_model("a").import(options);
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->lowered[0].unfit, "");
  EXPECT_EQ(imported->description.findings.size(), 2U);
}

TEST(OnnxLowering, AVerdictIsOneLineOfBoundedLength) {
  const auto imported = unfit_model(std::string(5000, 'n') + "\n").import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->lowered[0].unfit.size(), 1024U);
  const auto line = unfit_model("a\nb\x01").import();
  ASSERT_TRUE(line) << line.error().to_string();
  EXPECT_THAT(line->lowered[0].unfit, ::testing::StartsWith("node a b  (CumProd): "));
}

TEST(OnnxLowering, ANetworkThatCannotBeWrittenOutIsImportedAsGiven) {
  TestModel m(19);
  m.input("x", {1, 1, 1 << 20, 1 << 20}).ints("sizes", {1, 1, 1 << 20, 1 << 30}).open_output("y");
  auto& node = m.node("Resize", {"x", "", "", "sizes"}, {"y"});
  set_attribute(node, "mode", std::string("linear"));
  set_attribute(node, "antialias", std::int64_t{1});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(operators_of(given_graph_of(*imported)), "Resize");
  EXPECT_TRUE(imported->lowered[0].graph.empty());
  EXPECT_THAT(imported->lowered[0].unfit, ::testing::HasSubstr("more than"));
}

TEST(OnnxLowering, NodesOutOfOrderInAStoredNetworkAreSorted) {
  // An import sorts them; a file may have been made elsewhere.
  TestModel m;
  m.input("x", {4}).output("y", {4});
  m.node("Neg", {"t"}, {"y"});
  m.node("Relu", {"x"}, {"t"});
  const auto lowered = lower_onnx(m.bytes(), {}, lowerings()[0]);
  ASSERT_TRUE(lowered) << lowered.error().to_string();
  EXPECT_EQ(operators_of(lowered_model_of({lowered->graph, {}, {}, {}}).graph()), "Relu Neg");
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
  EXPECT_GE(inside, std::size_t{64} * 64 * sizeof(float)) << "the matrix of the transform";
}

TEST(OnnxLowering, AnEngineIsKnownByTheFirstWordOfItsName) {
  ASSERT_NE(lowering_for("OpenVINO 2026.4.1"), nullptr);
  EXPECT_EQ(lowering_for("OpenVINO 2026.4.1")->engine, "openvino");
  EXPECT_EQ(lowering_for("openvino"), lowering_for("OpenVINO 2027.0"));
  for (const char* other : {"", "none", "OpenVINO2", "open vino"})
    EXPECT_EQ(lowering_for(other), nullptr) << other;
}

TEST(OnnxLowering, ALoopThatMayMakeNoRoundIsForTheOtherEngine) {
  const auto verdict_with = [](const std::string& rounds, bool collects) {
    TestModel body;
    body.input("i", {}, T::INT64).input("c", {}, T::BOOL).input("v", {2}).output("c", {}, T::BOOL);
    body.open_output("w").open_output("s", T::INT64);
    body.node("Neg", {"v"}, {"w"});
    body.node("Identity", {"i"}, {"s"});
    TestModel m;
    m.input("x", {2})
        .input("n", {}, T::INT64)
        .typed("three", T::INT64, {}, {3})
        .typed("none", T::INT64, {}, {0});
    m.open_output("y");
    if (collects) m.open_output("z", T::INT64);
    set_graph(m.node("Loop", {rounds, "", "x"}, {"y", collects ? "z" : ""}), "body", body);
    const auto imported = m.import();
    return imported ? imported->lowered[0].unfit : imported.error().to_string();
  };
  EXPECT_THAT(verdict_with("n", true), HasSubstr("no round"));
  EXPECT_THAT(verdict_with("none", true), HasSubstr("no round"));
  EXPECT_EQ(verdict_with("three", true), "");
  EXPECT_EQ(verdict_with("n", false), "") << "a value of fixed size stays what it was";
}

TEST(OnnxLowering, BytesAndRevisionsThatItCannotServeAreRefused) {
  EXPECT_EQ(lower_onnx(as_byte_span("ONNX"), {}, lowerings()[0]).error().code(), Code::kMalformed);
  TestModel m;
  m.input("x", {4}).output("y", {4});
  m.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(lower_onnx(m.bytes(), {}, Lowering{"openvino", 0}).error().code(),
            Code::kInvalidArgument);
}

TEST(OnnxLowering, OutputsThatAreInputsAreForTheOtherEngine) {
  TestModel m;
  m.input("x", {2}).output("y", {2}).output("x", {2});
  m.node("Relu", {"x"}, {"y"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->lowered[0].unfit,
            "output x (output): it is an input, which the engine writes over");
  TestModel copied;
  copied.input("x", {2}).output("y", {2});
  copied.node("Identity", {"x"}, {"y"});
  EXPECT_EQ(copied.import()->lowered[0].unfit, "");
}

TEST(OnnxLowering, OutputsThatAreQuantizedConstantsAreForTheOtherEngine) {
  const auto verdict_on = [](const std::string& value, bool after = false) {
    TestModel m;
    m.input("x", {2}).output("y", {2});
    m.floats("c", {2}, {1, 2}).floats("scale", {}, {0.5F});
    m.typed("zero", T::UINT8, {}, {8}).typed("no", T::BOOL, {2}, {0, 0});
    m.node("Where", {"no", "x", "c"}, {"chosen"});
    m.node("Add", {"x", "c"}, {"sum"});
    m.node("QuantizeLinear", {value, "scale", "zero"}, {"q"});
    m.node("DequantizeLinear", {"q", "scale", "zero"}, {"d"});
    m.node(after ? "Mul" : "Relu",
           after ? std::vector<std::string>{"d", "x"} : std::vector<std::string>{"d"}, {"y"});
    const auto imported = m.import();
    return imported ? imported->lowered[0].unfit : imported.error().to_string();
  };
  EXPECT_EQ(verdict_on("c"),
            "output y (output): it is a quantized constant; the engine gives its integers");
  EXPECT_NE(verdict_on("chosen"), "") << "the condition is constant";
  EXPECT_EQ(verdict_on("sum"), "");
  EXPECT_EQ(verdict_on("c", true), "") << "an input takes part";
}

TEST(OnnxLowering, NetworksWithStringsAreUnfit) {
  TestModel m;
  m.input("x", {1}).output("y", {1});
  auto& text = *m.graph().add_initializer();
  text.set_name("words");
  text.set_data_type(::onnx::TensorProto::STRING);
  text.add_dims(1);
  text.add_string_data("a");
  m.node("Relu", {"x"}, {"y"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_THAT(imported->lowered[0].unfit, ::testing::HasSubstr("'words'"));
}

}  // namespace
}  // namespace corelane::onnx
