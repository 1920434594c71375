#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

TestModel sum_with_weights() {
  TestModel m;
  m.input("x", {1, 3}).output("y", {1, 3});
  m.node("Add", {"x", "w"}, {"y"});
  return m;
}

TEST(OnnxRepeats, OfInitialisersOfOneNameAndShapeTheLastOneStays) {
  TestModel m = sum_with_weights();
  m.floats("w", {3}, {1, 2, 3}).floats("unused", {1}, {7}).floats("w", {3}, {4, 5, 6});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  const ::onnx::GraphProto graph = given_graph_of(*imported);
  ASSERT_EQ(graph.initializer_size(), 2);
  const auto inlined = inline_constants(imported->graph, imported->constants);
  ASSERT_TRUE(inlined);
  ::onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromArray(inlined->data(), static_cast<int>(inlined->size())));
  std::vector<float> kept(3);
  for (const auto& tensor : model.graph().initializer()) {
    if (tensor.name() != "w") continue;
    ASSERT_EQ(tensor.raw_data().size(), sizeof(float) * kept.size());
    std::memcpy(kept.data(), tensor.raw_data().data(), tensor.raw_data().size());
  }
  EXPECT_EQ(kept, (std::vector<float>{4, 5, 6}));
}

TEST(OnnxRepeats, InitialisersOfOneNameThatDifferInShapeOrTypeAreRefused) {
  TestModel shapes = sum_with_weights();
  shapes.floats("w", {3}, {1, 2, 3}).floats("w", {1}, {4});
  EXPECT_EQ(shapes.import().error().code(), Code::kMalformed);
  TestModel types = sum_with_weights();
  types.floats("w", {3}, {1, 2, 3}).ints("w", {4, 5, 6});
  EXPECT_EQ(types.import().error().code(), Code::kMalformed);
}

TEST(OnnxRepeats, AFaultOfTheGraphNamesItsNodeInputOrOutput) {
  TestModel node;
  node.input("x", {1, 4}).output("y", {1, 4});
  node.node("Add", {"x", "nowhere"}, {"y"});
  const Status missing = node.import().error();
  EXPECT_EQ(missing.detail(Detail::kNode), "node_Add1");
  EXPECT_EQ(missing.detail(Detail::kOperator), "Add");
  TestModel output;
  output.input("x", {1, 4}).output("z", {1, 4});
  output.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(output.import().error().detail(Detail::kOutput), "z");
  TestModel input;
  input.input("x", {1, 4}).input("x", {1, 4}).output("y", {1, 4});
  input.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(input.import().error().detail(Detail::kInput), "x");
}

}  // namespace
}  // namespace corelane::onnx
