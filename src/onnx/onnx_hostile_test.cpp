// Models made to break the import: sizes that overflow, lists that grow from node to node, nodes
// and subgraphs that do not fit each other. Each is refused or taken over, never followed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/check/onnx_check.h"
#include "onnx/infer/onnx_facts.h"
#include "onnx/infer/onnx_infer.h"
#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using ::testing::HasSubstr;
using T = ::onnx::TensorProto;

constexpr std::int64_t kHuge = std::int64_t{1} << 32;

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
  for (const char* name : {"tile", "pad", "concat", "up", "conv", "back"})
    EXPECT_EQ((*facts.of(name).shape)[2], Shape::kOpen) << name;
}

// Rules: what does not fit is left to the engine, which says no, or unfit for it.

void expect_kept(TestModel& m, std::string_view op, std::string_view what) {
  const auto imported = m.import();
  ASSERT_TRUE(imported) << what << ": " << imported.error().to_string();
  EXPECT_THAT(operators_of(graph_of(*imported)), HasSubstr(std::string(op))) << what;
}

void expect_unfit(TestModel& m, std::string_view text) {
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_THAT(imported->lowered[0].unfit, HasSubstr(std::string(text)));
  EXPECT_EQ(imported->description.findings.front().kind, ImportFinding::Kind::kWarning);
}

/// y = the sum over the rows of x, by a Scan; `outputs` of them.
TestModel scan_model(std::int64_t count, const std::vector<std::string>& outputs) {
  TestModel m;
  m.input("s", {2}).input("x", {3, 2}).open_output("y");
  auto& node = m.node("Scan", {"s", "x"}, outputs);
  set_int(node, "num_scan_inputs", count);
  TestModel body;
  body.input("a", {2}).input("b", {2}).open_output("c");
  body.node("Add", {"a", "b"}, {"c"});
  set_graph(node, "body", body);
  return m;
}

TEST(OnnxHostile, ScanWithMoreOutputsThanItsBodyIsKept) {
  TestModel good = scan_model(1, {"y"});
  expect_kept(good, "Add", "written out");
  TestModel m = scan_model(1, {"y", "more", "and", "more still"});
  expect_kept(m, "Scan", "outputs");
  for (const std::int64_t count :
       {(std::int64_t{1} << 31) - 1, std::int64_t{-1}, std::int64_t{3}, -(std::int64_t{1} << 31)}) {
    TestModel wrong = scan_model(count, {"y"});
    expect_kept(wrong, "Scan", std::to_string(count));
  }
}

TEST(OnnxHostile, HeadsThatDoNotDivideAreLeftToTheEngine) {
  const std::vector<TestModel::Dims> keys{
      {1, 0, 2, 4}, {1, 3, 2, 4}, {1, 2, 4}, {}, {1, 2, 2, 4, 1}};
  for (const auto& k : keys) {
    TestModel m(26);
    m.input("q", {1, 4, 2, 4}).input("k", k).input("v", {1, 2, 2, 4}).open_output("y");
    auto& domain = *m.proto().add_opset_import();
    domain.set_domain("ai.onnx.preview");
    domain.set_version(1);
    m.node("FlexAttention", {"q", "k", "v"}, {"y"}).set_domain("ai.onnx.preview");
    expect_kept(m, "FlexAttention", "heads");
  }
}

TEST(OnnxHostile, TransformsWhoseMatrixOverflowsAreKept) {
  for (const std::int64_t n : {kHuge, std::int64_t{1} << 62}) {
    TestModel m(17);
    m.input("x", {1, n, 1}).open_output("y");
    m.node("DFT", {"x"}, {"y"});
    expect_kept(m, "DFT", std::to_string(n));
  }
  for (const std::int64_t frames : {std::int64_t{0}, kHuge}) {
    TestModel m(17);
    m.input("x", {1, 100, 1}).input("step", {}, T::INT64).input("length", {}, T::INT64);
    m.output("y", {1, frames, std::int64_t{1} << 31, 2});
    m.node("STFT", {"x", "step", "", "length"}, {"y"});
    expect_kept(m, "STFT", std::to_string(frames));
  }
}

TestModel attention_model(const TestModel::Dims& v, const TestModel::Dims& past, bool both) {
  TestModel m(24);
  m.input("q", {1, 2, 3, 4}).input("k", {1, 2, 3, 4}).input("v", v).input("past", past);
  m.open_output("y");
  std::vector<std::string> inputs{"q", "k", "v", "", "past"};
  if (both) inputs.push_back("past");
  set_int(m.node("Attention", inputs, {"y"}), "left_window_size", 1);
  return m;
}

TEST(OnnxHostile, AttentionOfOtherRanksIsUnfit) {
  const TestModel::Dims usual{1, 2, 3, 4};
  TestModel good = attention_model(usual, usual, true);
  expect_kept(good, "Softmax", "written out");
  const TestModel::Dims large{1, 2, std::int64_t{1} << 62, 4};
  for (auto m : {attention_model({1, 4}, usual, true), attention_model({}, usual, true),
                 attention_model(usual, {1, 2}, true), attention_model(usual, {}, true),
                 attention_model(usual, usual, false), attention_model(usual, large, true)}) {
    expect_unfit(m, "sliding window");
  }
}

TEST(OnnxHostile, LinearAttentionWithoutItsInputsIsUnfit) {
  for (const std::int64_t heads : {1, 3}) {
    TestModel m(26);
    m.input("q", {1, 2, 6}).input("k", {1, 2, 4}).input("v", {1, 2, 4}).open_output("y");
    auto& node = m.node("LinearAttention", {"q", "k", "v"}, {"y", "state"});
    set_int(node, "q_num_heads", heads);
    set_int(node, "kv_num_heads", 2);
    expect_unfit(m, "LinearAttention");
  }
}

TEST(OnnxHostile, LinearAttentionFromAStateOfUnknownRankIsUnfit) {
  TestModel m(26);
  m.input("q", {1, 2, 4}).input("k", {1, 2, 4}).input("v", {1, 2, 4}).open_output("y");
  m.input("p", {4}).input("shape", {"n"}, T::INT64);
  m.node("Reshape", {"p", "shape"}, {"past"});
  auto& node = m.node("LinearAttention", {"q", "k", "v", "past"}, {"y", "state"});
  set_int(node, "q_num_heads", 2);
  set_int(node, "kv_num_heads", 1);
  set_attribute(node, "update_rule", std::string("linear"));
  expect_unfit(m, "LinearAttention");
}

// Sizes that a file only declares: constants of them are asked for before they are built.

TEST(OnnxHostile, NetworksWrittenOutBeyondTheRoomAreUnfit) {
  {
    TestModel m(24);
    m.input("q", {1, 1, 1 << 30, 4}).input("k", {1, 1, 1 << 30, 4}).open_output("y");
    set_int(m.node("Attention", {"q", "k", "k"}, {"y"}), "left_window_size", 1);
    expect_unfit(m, "more than");
  }
  {
    TestModel m(19);
    m.input("x", {1, 1, 1 << 20, 1 << 20}).open_output("y");
    m.ints("sizes", {1, 1, 1 << 20, 1 << 30});
    auto& node = m.node("Resize", {"x", "", "", "sizes"}, {"y"});
    set_attribute(node, "mode", std::string("linear"));
    set_int(node, "antialias", 1);
    expect_unfit(m, "more than");
  }
}

TEST(OnnxHostile, ConstantsOfOneValueTakeNoRoom) {
  const std::int64_t large = std::int64_t{1} << 30;
  TestModel cum(26);
  cum.input("x", {large, 4}).ints("axis", {0}).open_output("y");
  cum.node("CumProd", {"x", "axis"}, {"y"});
  TestModel conv(26);
  conv.input("x", {1, large, 4}).input("w", {large, 1, 9}).open_output("y");
  conv.node("CausalConvWithState", {"x", "w"}, {"y", "state"});
  TestModel linear(26);
  linear.input("q", {1, 2, large}).input("v", {1, 2, large}).open_output("y");
  auto& node = linear.node("LinearAttention", {"q", "q", "v"}, {"y", "state"});
  set_int(node, "q_num_heads", 1);
  set_int(node, "kv_num_heads", 1);
  set_attribute(node, "update_rule", std::string("linear"));
  for (auto* m : {&cum, &conv, &linear}) {
    const auto imported = m->import();
    ASSERT_TRUE(imported) << imported.error().to_string();
    EXPECT_LT(imported->graph.size() + imported->constants.size(), 100'000u);
  }
}

TEST(OnnxHostile, ScanStepsShareTheConstantsOfTheirBody) {
  TestModel m;
  m.input("s", {200}).input("x", {64, 200}).open_output("y");
  auto& node = m.node("Scan", {"s", "x"}, {"y"});
  set_int(node, "num_scan_inputs", 1);
  TestModel body;
  body.input("a", {200}).input("b", {200}).open_output("c");
  body.floats("w", {200}, std::vector<double>(200, 2.0));
  body.node("Mul", {"b", "w"}, {"p"});
  body.node("Add", {"a", "p"}, {"c"});
  set_graph(node, "body", body);
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  const ::onnx::GraphProto graph = graph_of(*imported);
  int weights = 0;
  for (const auto& t : graph.initializer())
    weights += t.dims_size() == 1 && t.dims(0) == 200 ? 1 : 0;
  EXPECT_EQ(weights, 1);
}

TEST(OnnxHostile, NodesThatTheRulesAddHaveABound) {
  // Each Scan of a few bytes becomes some hundred nodes.
  TestModel one = scan_model(1, {"y"});
  one.graph()
      .mutable_input(1)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_value(64);
  const ::onnx::NodeProto scan = one.graph().node(0);
  one.graph().clear_node();
  std::string state = "s";
  for (int i = 0; i < 4000; ++i) {
    auto& n = *one.graph().add_node();
    n = scan;
    n.set_name("");
    n.set_input(0, state);
    state = i == 3999 ? "y" : "s" + std::to_string(i);
    n.set_output(0, state);
  }
  expect_unfit(one, "more than");
}

// Names.

TEST(OnnxHostile, NewNamesAvoidThoseOfInputsAndSubgraphs) {
  TestModel m(12);
  m.input("corelane/celu_0", {2}, T::FLOAT16).input("flag", {}, T::BOOL);
  m.open_output("y", T::FLOAT16);
  m.node("Celu", {"corelane/celu_0"}, {"c"});
  auto& branch = m.node("If", {"flag"}, {"y"});
  for (const char* name : {"then_branch", "else_branch"}) {
    TestModel inner;
    inner.node("Identity", {"c"}, {"corelane1/x"});
    inner.open_output("corelane1/x", T::FLOAT16);
    set_graph(branch, name, inner);
  }
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  int fresh = 0;
  const ::onnx::GraphProto graph = graph_of(*imported);
  for (const auto& n : graph.node()) {
    for (const auto& out : n.output()) {
      EXPECT_FALSE(out.starts_with("corelane/") || out.starts_with("corelane1/")) << out;
      fresh += out.starts_with("corelane2/") ? 1 : 0;
    }
  }
  EXPECT_GT(fresh, 0);
}

TEST(OnnxHostile, ManyTakenPrefixesAreReadOnce) {
  // A look at all names for each prefix would take 40 000 times 40 000 comparisons.
  TestModel m(12);
  m.input("x", {2}, T::FLOAT16).open_output("y", T::FLOAT16);
  std::string last = "x";
  m.node("Identity", {"x"}, {"corelane/0"});
  for (int i = 1; i < 40'000; ++i) {
    const std::string name = "corelane" + std::to_string(i) + "/0";
    auto& n = m.node("Identity", {last}, {name});
    n.clear_name();
    last = name;
  }
  m.node("Celu", {last}, {"y"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_THAT(graph_of(*imported).node(39'999 + 1).output(0), HasSubstr("corelane40000/"));
}

}  // namespace
}  // namespace corelane::onnx
