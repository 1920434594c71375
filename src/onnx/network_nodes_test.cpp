#include "corelane/onnx/network_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using testing::ElementsAre;

TEST(NetworkNodes, TellNamesShapesAndAttributesInOrder) {
  TestModel m;
  m.input("x", {1, 4}).output("y", {1, "K"});
  m.floats("w", {4}, {1, 2, 3, 4});
  m.node("Add", {"x", "w"}, {"sum"});
  auto& node = m.node("MyOp", {"sum", ""}, {"y"});
  node.set_domain("vendor");
  node.clear_name();
  set_attribute(node, "axis", std::int64_t{-1});
  set_attribute(node, "mode", std::string("fast"));
  set_attribute(node, "pads", std::vector<std::int64_t>{1, 2});
  ImportOptions options;
  options.custom_operators = {"MyOp"};
  const auto imported = m.import(options);
  ASSERT_TRUE(imported) << imported.error().to_string();
  const auto nodes = network_nodes(as_bytes(std::span(imported->graph)));
  ASSERT_TRUE(nodes) << nodes.error().to_string();
  ASSERT_EQ(nodes->size(), 2u);
  const NetworkNode& add = (*nodes)[0];
  EXPECT_EQ(add.type, "Add");
  EXPECT_EQ(add.name, "node_Add1");
  EXPECT_EQ(add.inputs[0].shape.to_string(), "[1, 4]");
  EXPECT_EQ(add.inputs[1].name, "w");
  EXPECT_EQ(add.inputs[1].dtype, DType::kF32);
  EXPECT_EQ(add.outputs[0].name, "sum");
  EXPECT_EQ(add.outputs[0].dtype, DType::kUndefined);
  const NetworkNode& custom = (*nodes)[1];
  EXPECT_EQ(custom.domain, "vendor");
  EXPECT_EQ(custom.name, "y");
  EXPECT_EQ(custom.inputs[1].name, "");
  EXPECT_EQ(custom.outputs[0].dtype, DType::kF32);
  EXPECT_EQ(custom.outputs[0].shape.to_string(), "[1, ?]");
  ASSERT_EQ(custom.attributes.size(), 3u);
  EXPECT_EQ(std::get<std::int64_t>(custom.attributes.at("axis")), -1);
  EXPECT_EQ(std::get<std::string>(custom.attributes.at("mode")), "fast");
  EXPECT_THAT(std::get<std::vector<std::int64_t>>(custom.attributes.at("pads")), ElementsAre(1, 2));
}

TEST(NetworkNodes, OtherBytesAreMalformed) {
  const ByteVector bytes(64, std::byte{0xff});
  EXPECT_EQ(network_nodes(as_bytes(std::span(bytes))).error().code(), Code::kMalformed);
}

}  // namespace
}  // namespace corelane::onnx
