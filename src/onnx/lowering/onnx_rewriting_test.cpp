// What the rules write, where a run on the node tests of ONNX does not show it.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "corelane/onnx/onnx_lowering.h"
#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

void set_text(::onnx::NodeProto& node, const char* name, const char* value) {
  auto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(::onnx::AttributeProto::STRING);
  a.set_s(value);
}

/// The axes that a crop of [1, 4, 4, 4] to the same size gathers along, as digits in order.
std::string cropped_axes(const std::vector<double>& roi) {
  TestModel m;
  m.input("x", {1, 4, 4, 4}).output("y", {1, 4, 4, 4});
  m.floats("roi", {8}, roi).ints("sizes", {1, 4, 4, 4});
  auto& node = m.node("Resize", {"x", "roi", "", "sizes"}, {"y"});
  set_text(node, "mode", "nearest");
  set_text(node, "coordinate_transformation_mode", "tf_crop_and_resize");
  const auto imported = m.import();
  if (!imported) return imported.error().to_string();
  std::string axes;
  const ::onnx::GraphProto graph = graph_of(*imported);
  for (const auto& n : graph.node())
    if (n.op_type() == "Gather") axes += std::to_string(int_attribute(n, "axis", 0));
  return axes;
}

TEST(OnnxRewriting, CropOfTheChannelsIsKeptThoughTheirNumberStays) {
  EXPECT_EQ(cropped_axes({0, 0.5, 0, 0, 1, 1, 1, 1}), "123");
  EXPECT_EQ(cropped_axes({0.5, 0, 0, 0, 1, 1, 1, 1}), "023");
  EXPECT_EQ(cropped_axes({0, 0, 0, 0, 1, 1, 1, 1}), "23");
}

// OpenVINO gave the input the name of the output, under which nobody looks for it.
TEST(OnnxRewriting, OperatorsOfOneOperandAreIdentities) {
  for (const char* op : {"Max", "Mean", "Min", "Sum"}) {
    TestModel m;
    m.input("x", {3}).input("z", {3}).output("y", {3}).output("both", {3});
    m.node(op, {"x"}, {"y"});
    m.node(op, {"x", "z"}, {"both"});
    const auto imported = m.import();
    ASSERT_TRUE(imported) << imported.error().to_string();
    const ::onnx::GraphProto graph = graph_of(*imported);
    ASSERT_EQ(graph.node_size(), 2);
    EXPECT_EQ(graph.node(0).op_type(), "Identity");
    EXPECT_EQ(graph.node(1).op_type(), op);
  }
}

/// y = the sums over the rows of x [steps, 2], by a Scan.
std::string unfit_scan(std::int64_t steps) {
  TestModel m;
  m.input("s", {2}).input("x", {steps, 2}).open_output("y");
  auto& node = m.node("Scan", {"s", "x"}, {"y"});
  set_attribute(node, "num_scan_inputs", std::int64_t{1});
  TestModel body;
  body.input("a", {2}).input("b", {2}).open_output("c");
  body.node("Add", {"a", "b"}, {"c"});
  set_graph(node, "body", body);
  const auto imported = m.import();
  return imported ? imported->lowered[0].unfit : imported.error().to_string();
}

TEST(OnnxRewriting, AScanOfManyStepsIsForTheOtherEngine) {
  EXPECT_EQ(unfit_scan(64), "");
  EXPECT_THAT(unfit_scan(65), ::testing::HasSubstr("many or unknown steps"));
  EXPECT_THAT(unfit_scan(-1), ::testing::HasSubstr("many or unknown steps"));
}

TEST(OnnxRewriting, ALossThatIgnoresATargetIsForTheOtherEngine) {
  for (const bool ignores : {false, true}) {
    TestModel m;
    m.input("x", {2, 3, 4}).open_output("y");
    m.typed("target", T::INT64, {2, 4}, std::vector<double>(8, 1));
    auto& node = m.node("NegativeLogLikelihoodLoss", {"x", "target"}, {"y"});
    if (ignores) set_attribute(node, "ignore_index", std::int64_t{1});
    const auto imported = m.import();
    ASSERT_TRUE(imported) << imported.error().to_string();
    EXPECT_EQ(imported->lowered[0].unfit.empty(), !ignores);
  }
}

/// The operators of x -> ReduceMax along `axis` -> Relu -> `op` with a constant -> y.
std::string reduced_operators(const TestModel::Dims& x, std::int64_t axis, const char* op,
                              const std::vector<std::int64_t>& constant, bool keep = true) {
  TestModel m;
  m.input("x", x).open_output("y");
  std::int64_t size = 1;
  for (const auto d : constant) size *= d;
  m.floats("c", constant, std::vector<double>(static_cast<std::size_t>(size), 2.0));
  auto& node = m.node("ReduceMax", {"x"}, {"r"});
  set_attribute(node, "axes", std::vector<std::int64_t>{axis});
  set_int(node, "keepdims", keep ? 1 : 0);
  m.node("Relu", {"r"}, {"t"});
  m.node(op, {"t", "c"}, {"y"});
  const auto imported = m.import();
  return imported ? operators_of(graph_of(*imported)) : imported.error().to_string();
}

TEST(OnnxRewriting, ConstantsForEachChannelAreKeptApartFromAReductionOfOneOfThreeDimensions) {
  for (const char* n : {"n", "2"}) {
    const TestModel::Dims x{std::string_view(n) == "2" ? TestModel::Dim(2) : TestModel::Dim(n), 3,
                            5};
    for (const char* op : {"Add", "Sub", "Mul", "Div", "PRelu"})
      for (const std::int64_t axis : {0, 2, -1, -3})
        EXPECT_EQ(reduced_operators(x, axis, op, {1, 3, 1}).substr(0, 25),
                  "ReduceMax Relu Unsqueeze ")
            << op << axis;
  }
}

TEST(OnnxRewriting, OtherConstantsBehindAReductionAndOtherReductionsAreLeftAsTheyAre) {
  const char* const kKept = "ReduceMax Relu Add";
  EXPECT_EQ(reduced_operators({2, 3, 5}, 1, "Add", {2, 1, 1}), kKept) << "the middle dimension";
  EXPECT_EQ(reduced_operators({2, 3, 5}, 2, "Add", {1}), kKept) << "one value";
  EXPECT_EQ(reduced_operators({2, 3, 5}, 2, "Add", {2, 3, 1}), kKept) << "a value for each";
  EXPECT_EQ(reduced_operators({2, 3, 4, 5}, 3, "Add", {1, 3, 1, 1}), kKept) << "four dimensions";
  EXPECT_EQ(reduced_operators({2, 3, 5}, 2, "Max", {1, 3, 1}), "ReduceMax Relu Max");
}

TEST(OnnxRewriting, NetworksWithSuchConstantsAreLoweredOnce) {
  TestModel m;
  m.input("x", {2, 3, 5}).open_output("y").floats("c", {1, 3, 1}, {1, 2, 3});
  m.typed("z", T::UINT8, {}, {3}).floats("s", {}, {0.5});
  m.node("GlobalMaxPool", {"x"}, {"r"});
  m.node("Mul", {"r", "c"}, {"t"});
  m.node("Add", {"c", "t"}, {"u"});
  m.node("QuantizeLinear", {"u", "s", "z"}, {"q"});
  m.node("DequantizeLinear", {"q", "s", "z"}, {"y"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_NE(operators_of(graph_of(*imported)).find("Unsqueeze Max Squeeze QuantizeLinear"),
            std::string::npos);
  const auto again = lower_onnx(imported->lowered[0].graph, imported->constants, lowerings()[0]);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_TRUE(again->graph.empty());
}

/// The operators of x -> `op` with an axis -> y.
std::string softmax_operators(std::int64_t opset, std::int64_t axis, const TestModel::Dims& x) {
  TestModel m(opset);
  m.input("x", x).open_output("y");
  set_int(m.node("Softmax", {"x"}, {"y"}), "axis", axis);
  const auto imported = m.import();
  return imported ? operators_of(graph_of(*imported)) : imported.error().to_string();
}

TEST(OnnxRewriting, SoftmaxOfOperatorSets11And12IsFlattenedWhereItsAxisIsNotTheLast) {
  EXPECT_EQ(softmax_operators(11, 1, {2, 3, 4}), "Flatten Softmax Reshape");
  EXPECT_EQ(softmax_operators(12, -3, {"n", 3, 4}), "Flatten Softmax Shape Reshape");
  EXPECT_EQ(softmax_operators(12, 2, {2, 3, 4}), "Softmax");
  EXPECT_EQ(softmax_operators(12, 1, {2, 3, 1}), "Softmax");
  EXPECT_EQ(softmax_operators(10, 1, {2, 3, 4}), "Softmax");
  EXPECT_EQ(softmax_operators(13, 1, {2, 3, 4}), "Softmax");
}

TEST(OnnxRewriting, ASlopeOfRankOneIsForTheLastDimension) {
  const auto operators = [](const TestModel::Dims& x) {
    TestModel m;
    m.input("x", x).open_output("y").floats("slope", {4}, {1, 2, 3, 4});
    m.node("PRelu", {"x", "slope"}, {"y"});
    const auto imported = m.import();
    return imported ? operators_of(graph_of(*imported)) : imported.error().to_string();
  };
  EXPECT_EQ(operators({"n", 4, 4}), "Unsqueeze PRelu");
  EXPECT_EQ(operators({"n", 4}), "PRelu");
}

TEST(OnnxRewriting, ReductionsWhoseAxesTheEngineDoesNotReadAreForTheOtherEngine) {
  const auto unfit = [](std::int64_t opset, const char* op) {
    TestModel m(opset);
    m.input("x", {2, 3, 4}).open_output("y");
    set_attribute(m.node(op, {"x"}, {"y"}), "axes", std::vector<std::int64_t>{1});
    const auto imported = m.import();
    EXPECT_TRUE(imported) << imported.error().to_string();
    return imported && !imported->lowered[0].unfit.empty();
  };
  for (const std::int64_t opset : {13, 17})
    for (const char* op : {"ReduceL1", "ReduceLogSum", "ReduceLogSumExp"})
      EXPECT_TRUE(unfit(opset, op)) << op << " of set " << opset;
  EXPECT_FALSE(unfit(13, "ReduceL2"));
  EXPECT_FALSE(unfit(12, "ReduceL1"));
}

/// The threshold that the engine is given, with a value of its own or, below -1, without one.
std::optional<double> threshold_given(double threshold) {
  TestModel m(11);
  m.input("boxes", {1, 2, 4}).input("scores", {1, 1, 2}).open_output("y", T::INT64);
  m.ints("most", {2});
  if (threshold >= -1) m.floats("threshold", {1}, {threshold});
  auto& node = m.node("NonMaxSuppression", {"boxes", "scores", "most"}, {"y"});
  if (threshold >= -1) node.add_input("threshold");
  const auto imported = m.import();
  if (!imported) return std::nullopt;
  const ::onnx::GraphProto graph = graph_of(*imported);
  for (const auto& constant : graph.initializer())
    if (constant.name() == graph.node(0).input(3)) {
      float value = 0;
      std::memcpy(&value, constant.raw_data().data(), sizeof value);
      return value;
    }
  return std::nullopt;
}

TEST(OnnxRewriting, BoxesThatOverlapByTheThresholdAreKept) {
  EXPECT_EQ(threshold_given(0.5), std::nextafter(0.5f, 1.0f));
  EXPECT_EQ(threshold_given(0), std::numeric_limits<float>::min());
  EXPECT_EQ(threshold_given(-2), std::numeric_limits<float>::min()) << "the default is 0";
}

TEST(OnnxRewriting, AThresholdThatComesWithARunIsForTheOtherEngine) {
  TestModel m(11);
  m.input("boxes", {1, 2, 4}).input("scores", {1, 1, 2}).input("threshold", {1});
  m.open_output("y", T::INT64).ints("most", {2});
  m.node("NonMaxSuppression", {"boxes", "scores", "most", "threshold"}, {"y"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_THAT(imported->lowered[0].unfit, ::testing::HasSubstr("by just the threshold"));
}

/// The verdict on x -> `op`, with a Log before it or not.
std::string verdict_on(const char* op, bool computed, const char* mode = nullptr) {
  TestModel m(20);
  m.input("x", {1, 3, 4, 4}).output("y", {});
  if (computed) m.node("Log", {"x"}, {"l"});
  auto& node = m.node(op, {computed ? "l" : "x"}, {"y"});
  if (mode != nullptr) {
    set_text(node, "mode", mode);
    m.input("rois", {1, 4}).ints("batch", {0});
    node.add_input("rois");
    node.add_input("batch");
  }
  const auto imported = m.import();
  return imported ? imported->lowered[0].unfit : imported.error().to_string();
}

TEST(OnnxRewriting, ANetworkThatLooksForNanInWhatItComputedIsForTheOtherEngine) {
  EXPECT_EQ(verdict_on("IsNaN", false), "");
  EXPECT_THAT(verdict_on("IsNaN", true), ::testing::HasSubstr("does not hand NaN on"));
}

TEST(OnnxRewriting, TheLargestSamplesOfARegionAreForTheOtherEngine) {
  EXPECT_EQ(verdict_on("RoiAlign", false, "avg"), "");
  EXPECT_THAT(verdict_on("RoiAlign", false, "max"), ::testing::HasSubstr("other samples"));
}

TEST(OnnxRewriting, TheMaximumOfNothingIsForTheOtherEngine) {
  for (const int size : {0, 2}) {
    TestModel m(20);
    m.input("x", {2, size, 4}).open_output("y").ints("axes", {1});
    m.node("ReduceMax", {"x", "axes"}, {"y"});
    const auto imported = m.import();
    ASSERT_TRUE(imported) << imported.error().to_string();
    EXPECT_EQ(imported->lowered[0].unfit.empty(), size != 0);
  }
}

}  // namespace
}  // namespace corelane::onnx
