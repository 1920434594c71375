// What the rules write, where a run on the node tests of ONNX does not show it.
#include <gtest/gtest.h>

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

/// The operators of a loss whose target has the shape of another one, known or not.
std::string loss_operators(const char* reduction, bool known) {
  TestModel m;
  m.input("x", {2, 3, 4}).input("t", {2, 4}, T::INT64).input("s", {"n"}, T::INT64);
  m.open_output("y").ints("fixed", {2, 4});
  m.node("Reshape", {"t", known ? "fixed" : "s"}, {"target"});
  auto& node = m.node("NegativeLogLikelihoodLoss", {"x", "target"}, {"y"});
  set_text(node, "reduction", reduction);
  auto& a = *node.add_attribute();
  a.set_name("ignore_index");
  a.set_type(::onnx::AttributeProto::INT);
  a.set_i(1);
  const auto imported = m.import();
  return imported ? operators_of(graph_of(*imported)) : imported.error().to_string();
}

TEST(OnnxRewriting, LossOfATargetOfUnknownRankIsNotReducedAlongItsFirstDimensionOnly) {
  EXPECT_NE(loss_operators("mean", true).find("ReduceSum"), std::string::npos);
  EXPECT_EQ(loss_operators("mean", false), "Reshape NegativeLogLikelihoodLoss");
  EXPECT_EQ(loss_operators("sum", false), "Reshape NegativeLogLikelihoodLoss");
}

}  // namespace
}  // namespace corelane::onnx
