#include "drivers/virtual/common/onnx_patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/virtual/test_networks.h"

namespace corelane::drivers::virtual_npu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string external_network(std::string_view location, std::string_view offset,
                             std::string_view length) {
  return NetworkBuilder()
      .input("x", {1, 2})
      .external("w", {2, 3}, kOnnxFloat, location, offset, length)
      .node("MatMul", {"x", "w"}, {"y"})
      .output("y", {1, 3})
      .bytes();
}

Result<PatchedModel> patch(const std::string& bytes, std::size_t constants = 0,
                           const device::PrepareOptions& options = {}) {
  return patch_onnx(onnx_image(bytes, ByteVector(constants)), options);
}

TEST(OnnxPatch, ConstantsBecomeAddresses) {
  const device::Image image =
      onnx_image(external_network("corelane:constants", "64", "24"), ByteVector(88));
  const auto patched = patch_onnx(image, {});
  ASSERT_TRUE(patched) << patched.error().to_string();
  EXPECT_THAT(patched->bytes, HasSubstr("*/_ORT_MEM_ADDR_/*"));
  EXPECT_THAT(patched->bytes, Not(HasSubstr("corelane:constants")));
  const auto address = reinterpret_cast<std::uintptr_t>(image.constants.data() + 64);
  EXPECT_THAT(patched->bytes, HasSubstr(std::to_string(address)));
  EXPECT_EQ(patched->constant_bytes, 24U);
}

TEST(OnnxPatch, ConstantOutsideTheSegmentIsRefused) {
  for (const char* offset : {"65", "88", "18446744073709551615", "99999999999999999999999"}) {
    const auto patched = patch(external_network("corelane:constants", offset, "24"), 88);
    ASSERT_FALSE(patched) << offset;
    EXPECT_EQ(patched.error().code(), Code::kMalformed) << offset;
    EXPECT_THAT(patched.error().message(), HasSubstr("'w'"));
  }
}

TEST(OnnxPatch, ConstantThatDoesNotFillItsShapeIsRefused) {
  const auto patched = patch(external_network("corelane:constants", "0", "20"), 88);
  ASSERT_FALSE(patched);
  EXPECT_THAT(patched.error().message(), HasSubstr("20 bytes, its shape needs 24"));
}

TEST(OnnxPatch, ExternalFilesAreRefused) {
  const auto patched = patch(external_network("/etc/passwd", "0", "24"), 88);
  ASSERT_FALSE(patched);
  EXPECT_THAT(patched.error().message(), HasSubstr("/etc/passwd"));
}

TEST(OnnxPatch, EngineLocationInTheModelIsRefused) {
  // Otherwise a file could make the engine read any address of the process.
  const auto patched = patch(external_network("*/_ORT_MEM_ADDR_/*", "4096", "24"), 88);
  ASSERT_FALSE(patched);
  EXPECT_EQ(patched.error().code(), Code::kMalformed);
}

TEST(OnnxPatch, ShapesAreWrittenIntoTheInputs) {
  device::PrepareOptions options;
  options.input_shapes = {Shape{5, 2}};
  const auto patched = patch(matmul_network(), 0, options);
  ASSERT_TRUE(patched) << patched.error().to_string();
  ASSERT_EQ(patched->inputs.size(), 1U);
  EXPECT_EQ(patched->inputs[0].shape, (Shape{5, 2}));
  const auto again = patch(patched->bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->inputs[0].shape, (Shape{5, 2}));
  EXPECT_EQ(again->inputs[0].elem_type, kOnnxFloat);
}

TEST(OnnxPatch, ShapeOfAnotherRankIsRefused) {
  device::PrepareOptions options;
  options.input_shapes = {Shape{5, 2, 1}};
  const auto patched = patch(matmul_network(), 0, options);
  ASSERT_FALSE(patched);
  EXPECT_EQ(patched.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(patched.error().message(), HasSubstr("rank 3"));
}

TEST(OnnxPatch, CountOfShapesIsCountOfInputs) {
  device::PrepareOptions options;
  options.input_shapes = {Shape{5, 2}, Shape{1}};
  const auto patched = patch(matmul_network(), 0, options);
  ASSERT_FALSE(patched);
  EXPECT_THAT(patched.error().message(), HasSubstr("2 input shapes given, the network has 1"));
}

TEST(OnnxPatch, InputsThatAreInitialisersDoNotCount) {
  const std::string bytes = NetworkBuilder()
                                .input("x", {1, 2})
                                .input("w", {2, 3})
                                .floats("w", {2, 3}, {1, 2, 3, 4, 5, 6})
                                .node("MatMul", {"x", "w"}, {"y"})
                                .output("y", {1, 3})
                                .bytes();
  const auto patched = patch(bytes);
  ASSERT_TRUE(patched);
  ASSERT_EQ(patched->inputs.size(), 1U);
  EXPECT_EQ(patched->inputs[0].name, "x");
}

TEST(OnnxPatch, ExposedValuesComeAfterTheOutputs) {
  device::PrepareOptions options;
  options.exposed_values = {"h"};
  const auto patched = patch(matmul_network(), 0, options);
  ASSERT_TRUE(patched);
  ASSERT_EQ(patched->outputs.size(), 2U);
  EXPECT_EQ(patched->outputs[0].name, "y");
  EXPECT_EQ(patched->outputs[1].name, "h");
}

TEST(OnnxPatch, UnknownExposedValueIsNotFound) {
  device::PrepareOptions options;
  options.exposed_values = {"nothing"};
  const auto patched = patch(matmul_network(), 0, options);
  ASSERT_FALSE(patched);
  EXPECT_EQ(patched.error().code(), Code::kNotFound);
  EXPECT_THAT(patched.error().message(), HasSubstr("'nothing'"));
}

TEST(OnnxPatch, CustomNodesAreReadWithTheirAttributes) {
  const std::string bytes =
      NetworkBuilder()
          .input("x", {1, 4})
          .node("MyOp", {"x"}, {"y"}, "n1",
                {NetworkBuilder::int_attribute("alpha", 7),
                 NetworkBuilder::ints_attribute("list", {3, -1}),
                 NetworkBuilder::ints_attribute("corelane_output_dtypes", {kOnnxInt64}),
                 NetworkBuilder::strings_attribute("corelane_output_shapes", {"1,?,3"})},
                "my")
          .output("y", {1, 4, 3}, kOnnxInt64)
          .bytes();
  device::PrepareOptions options;
  options.custom_operators = {{"MyOp", "my"}};
  const auto patched = patch(bytes, 0, options);
  ASSERT_TRUE(patched) << patched.error().to_string();
  ASSERT_EQ(patched->custom_nodes.size(), 1U);
  const CustomNode& node = patched->custom_nodes[0];
  EXPECT_EQ(node.type, "MyOp");
  EXPECT_EQ(node.name, "n1");
  ASSERT_EQ(node.attributes.size(), 2U);
  EXPECT_EQ(std::get<std::int64_t>(node.attributes.find("alpha")->second), 7);
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(node.attributes.find("list")->second),
            (std::vector<std::int64_t>{3, -1}));
  ASSERT_EQ(node.output_dtypes.size(), 1U);
  EXPECT_EQ(node.output_dtypes[0], DType::kI64);
  EXPECT_EQ(node.output_shapes[0], (Shape{1, Shape::kOpen, 3}));
  EXPECT_EQ(node.output_count, 1U);
}

/// The model opens: the host operator's runs tell the reason.
TEST(OnnxPatch, AnAttributeThatNoHostOperatorGetsIsARefusalOfTheNode) {
  std::string type;  // An AttributeProto with a type.
  append_bytes_field(type, 1, "t");
  append_varint_field(type, 20, 13);
  std::string reason;
  append_bytes_field(reason, 1, "corelane_refusal");
  append_bytes_field(reason, 4, "the reason");
  append_varint_field(reason, 20, 3);
  device::PrepareOptions options;
  options.custom_operators = {{"MyOp", "my"}};
  for (const auto& attributes :
       {std::vector{type}, std::vector{type, reason}, std::vector{reason, type}}) {
    const auto patched = patch(NetworkBuilder()
                                   .input("x", {1, 4})
                                   .node("MyOp", {"x"}, {"y"}, "n1", attributes, "my")
                                   .output("y", {1, 4})
                                   .bytes(),
                               0, options);
    ASSERT_TRUE(patched) << patched.error().to_string();
    const CustomNode& node = patched->custom_nodes[0];
    EXPECT_TRUE(node.attributes.empty());
    EXPECT_THAT(node.refusal, HasSubstr(attributes.size() == 1 ? "attribute 't'" : "the reason"));
  }
}

TEST(OnnxPatch, TruncationAnywhereIsAnErrorOrASmallerModel) {
  const std::string whole = external_network("corelane:constants", "64", "24");
  ASSERT_TRUE(patch(whole, 88));
  std::size_t refused = 0;
  for (std::size_t size = 0; size < whole.size(); ++size)
    refused += patch(whole.substr(0, size), 88) ? 0 : 1;
  // Only cuts after the graph, which is the last field, could pass.
  EXPECT_EQ(refused, whole.size());
}

/// A chain of graphs within graphs.
std::string nested_network(int graphs) {
  std::string graph;
  for (int depth = 0; depth < graphs; ++depth) {
    std::string attribute;
    append_bytes_field(attribute, 1, "then_branch");
    append_bytes_field(attribute, 6, graph);
    std::string node;
    append_bytes_field(node, 4, "If");
    append_bytes_field(node, 5, attribute);
    graph.clear();
    append_bytes_field(graph, 1, node);
  }
  std::string model;
  append_bytes_field(model, 7, graph);
  return model;
}

TEST(OnnxPatch, DeepNestingIsRefused) {
  const auto patched = patch(nested_network(100));
  ASSERT_FALSE(patched);
  EXPECT_THAT(patched.error().message(), HasSubstr("nested deeper"));
}

/// Constants of a network with others within have no value of their own in ONNX Runtime.
TEST(OnnxPatch, TellsWhichConstantsAreTheNetworksOwnAndWhetherItHoldsOthers) {
  const auto plain = patch(external_network("corelane:constants", "64", "24"), 88);
  ASSERT_TRUE(plain);
  EXPECT_FALSE(plain->has_inner_graphs);
  ASSERT_EQ(plain->image_constants.size(), 1U);
  EXPECT_TRUE(plain->image_constants[0].top);
  EXPECT_EQ(plain->image_constants[0].dtype, DType::kF32);
  EXPECT_EQ(plain->image_constants[0].bytes.size(), 24U);
  const auto nested = patch(nested_network(2));
  ASSERT_TRUE(nested) << nested.error().to_string();
  EXPECT_TRUE(nested->has_inner_graphs);
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
