// Models made to break the import: sizes that overflow, lists that grow from node to node, nodes
// and subgraphs that do not fit each other. Each is refused or taken over, never followed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/onnx_check.h"
#include "model/onnx_facts.h"
#include "model/onnx_infer.h"
#include "model/onnx_test_model.h"

namespace corelane::onnx_import {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using T = onnx::TensorProto;

constexpr std::int64_t kHuge = std::int64_t{1} << 32;

void set_int(onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  set_attribute(node, name, value);
}

/// Facts of all values of a model as the walk in order finds them.
FactsTable facts_of(TestModel& m) {
  FactsTable facts;
  for (const auto& in : m.graph().input()) facts.learn(in);
  for (const auto& t : m.graph().initializer()) facts.learn(t.name(), t, {});
  for (const auto& n : m.graph().node()) infer_node(n, opset_of(m.proto()), {}, facts);
  return facts;
}

TEST(OnnxHostile, BlockSizesWhoseSquareOverflowsLeaveTheShapeOpen) {
  for (const char* op : {"DepthToSpace", "SpaceToDepth"}) {
    TestModel m;
    m.input("x", {1, 16, 4, 4}).open_output("y");
    set_int(m.node(op, {"x"}, {"y"}), "blocksize", kHuge);
    EXPECT_EQ((*facts_of(m).of("y").shape)[1], Shape::kOpen) << op;
    (void)m.import();
  }
}

TEST(OnnxHostile, KnownIntegersAreAsManyAsTheShapeSays) {
  TestModel m;
  m.ints("two", {1, 2}).ints("many", {4'000'000'000});
  m.ints("from", {3'900'000'000}).ints("to", {3'900'000'010}).open_output("y", T::INT64);
  m.node("Reshape", {"two", "many"}, {"r"});
  m.node("Slice", {"r", "from", "to"}, {"s"});
  m.node("Reshape", {"two", "many"}, {"column"});
  m.node("Transpose", {"column"}, {"y"});
  const FactsTable facts = facts_of(m);
  EXPECT_FALSE(facts.of("r").ints);
  EXPECT_FALSE(facts.of("s").ints);
  (void)m.import();
}

TEST(OnnxHostile, EmptyMatricesAreNotWalkedAlongTheirOtherDimension) {
  TestModel m;
  m.ints("none", {}).ints("wide", {0, std::int64_t{1} << 62}).open_output("y", T::INT64);
  set_int(m.node("Reshape", {"none", "wide"}, {"r"}), "allowzero", 1);
  set_attribute(m.node("Transpose", {"r"}, {"y"}), "perm", std::vector<std::int64_t>{1, 0});
  EXPECT_EQ(*facts_of(m).of("y").shape, (Shape{std::int64_t{1} << 62, 0}));
}

TEST(OnnxHostile, ListsDoNotGrowFromNodeToNode) {
  TestModel m;
  m.ints("c0", std::vector<std::int64_t>(1000, 1)).open_output("y", T::INT64);
  for (int i = 0; i < 20; ++i) {
    const std::string in = "c" + std::to_string(i);
    set_int(m.node("Concat", {in, in}, {"c" + std::to_string(i + 1)}), "axis", 0);
  }
  m.node("Identity", {"c20"}, {"y"});
  const FactsTable facts = facts_of(m);
  EXPECT_EQ(*facts.of("y").shape, (Shape{1000 << 20}));
  for (int i = 1; i <= 20; ++i) EXPECT_FALSE(facts.of("c" + std::to_string(i)).ints) << i;
  // What shapes need stays known.
  TestModel small;
  small.ints("a", {1, 2}).ints("b", {3});
  set_int(small.node("Concat", {"a", "b"}, {"y"}), "axis", 0);
  EXPECT_EQ(facts_of(small).of("y").ints, (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(OnnxHostile, LongListsOfAConstantAreNotHandedOn) {
  TestModel m;
  set_attribute(m.node("Constant", {}, {"c"}), "value_ints", std::vector<std::int64_t>(5000, 1));
  m.node("Identity", {"c"}, {"y"});
  EXPECT_FALSE(facts_of(m).of("c").ints);
  EXPECT_EQ(*facts_of(m).of("y").shape, Shape{5000});
}

TEST(OnnxHostile, RanksDoNotGrowFromNodeToNode) {
  TestModel m;
  m.input("i0", {1, 1, 1}, T::INT64);
  for (int i = 0; i < 40; ++i) {
    const std::string in = "i" + std::to_string(i);
    m.node("Gather", {in, in}, {"i" + std::to_string(i + 1)});
  }
  EXPECT_EQ(facts_of(m).of("i40").rank(), -1);
}

TEST(OnnxHostile, SizesThatOverflowAreOpen) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  TestModel m(10);
  m.input("x", {1, 1, most, most}).ints("repeats", {1, 1, most, most});
  m.ints("from", {most - 1}).ints("to", {most}).ints("step", {most});
  m.floats("scales", {4}, {1, 1, 1e30, -1});
  m.floats("w", {1, 1, 1, 1}, {1});
  m.node("Tile", {"x", "repeats"}, {"tile"});
  set_attribute(m.node("Pad", {"x"}, {"pad"}), "pads",
                std::vector<std::int64_t>{0, 0, most, most, 0, 0, most, most});
  set_int(m.node("Concat", {"x", "x"}, {"concat"}), "axis", 2);
  m.node("Upsample", {"x", "scales"}, {"up"});
  auto& conv = m.node("Conv", {"x", "w"}, {"conv"});
  set_attribute(conv, "pads", std::vector<std::int64_t>{most, most, most, most});
  set_attribute(conv, "dilations", std::vector<std::int64_t>{most, most});
  auto& back = m.node("ConvTranspose", {"x", "w"}, {"back"});
  set_attribute(back, "strides", std::vector<std::int64_t>{most, most});
  set_int(back, "group", most);
  m.node("Range", {"from", "to", "step"}, {"range"});
  const FactsTable facts = facts_of(m);
  for (const char* name : {"tile", "pad", "concat", "up", "conv", "back"}) {
    EXPECT_EQ((*facts.of(name).shape)[2], Shape::kOpen) << name;
  }
}

}  // namespace
}  // namespace corelane::onnx_import
