#include <gtest/gtest.h>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

ImportOptions batch_of(std::uint32_t batch) {
  ImportOptions options;
  options.batch = batch;
  return options;
}

TEST(OnnxBatch, MultipliesDimensionZeroOfInputsAndOutputs) {
  TestModel m;
  m.input("x", {1, 4}).input("y", {"n", 4}).output("z", {1, 4});
  m.node("Add", {"x", "y"}, {"z"});
  const auto imported = m.import(batch_of(3));
  ASSERT_TRUE(imported) << imported.error().to_string();
  const auto& d = imported->description;
  EXPECT_EQ(d.batch, 3U);
  EXPECT_EQ(d.inputs[0].desc.shape, (Shape{3, 4}));
  EXPECT_EQ(d.inputs[1].desc.shape, (Shape{3, 4}));
  EXPECT_EQ(d.outputs[0].desc.shape, (Shape{3, 4}));
}

TEST(OnnxBatch, ReshapeThatNamesOneCopyNamesAll) {
  TestModel m;
  m.input("x", {1, 2, 3}).output("y", {1, 6});
  m.ints("shape", {1, 6});
  m.node("Reshape", {"x", "shape"}, {"y"});
  const auto imported = m.import(batch_of(5));
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->description.outputs[0].desc.shape, (Shape{5, 6}));
}

TEST(OnnxBatch, CopiesAreFollowedThroughTransposes) {
  TestModel m;
  m.input("x", {1, 2, 3}).output("y", {1, 2, 3});
  for (const auto& [in, out] : {std::pair{"x", "t"}, std::pair{"r", "y"}}) {
    auto& a = *m.node("Transpose", {in}, {out}).add_attribute();
    a.set_name("perm");
    a.set_type(::onnx::AttributeProto::INTS);
    for (const int i : {1, 0, 2}) a.add_ints(i);
    if (std::string_view(out) == "t") m.node("Relu", {"t"}, {"r"});
  }
  const auto imported = m.import(batch_of(2));
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->description.outputs[0].desc.shape, (Shape{2, 2, 3}));
}

TEST(OnnxBatch, OutputWithItsCopiesElsewhereIsRefused) {
  TestModel m;
  m.input("x", {1, 2}).output("y", {2, 1});
  m.node("Transpose", {"x"}, {"y"});
  const auto imported = m.import(batch_of(2));
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().code(), Code::kUnsupportedModel);
  EXPECT_NE(imported.error().message().find("'y'"), std::string::npos);
}

TEST(OnnxBatch, NodeThatMixesTheCopiesIsRefusedByName) {
  TestModel m;
  m.input("x", {1, 4}).output("y", {1, 4});
  auto& a = *m.node("Softmax", {"x"}, {"y"}).add_attribute();
  a.set_name("axis");
  a.set_type(::onnx::AttributeProto::INT);
  a.set_i(0);
  const auto imported = m.import(batch_of(2));
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().code(), Code::kUnsupportedModel);
  EXPECT_NE(imported.error().message().find("node_Softmax1"), std::string::npos);
}

TEST(OnnxBatch, FixedFirstDimensionOtherThanOneIsRefused) {
  TestModel m;
  m.input("x", {2, 4}).output("y", {2, 4});
  m.node("Relu", {"x"}, {"y"});
  const auto imported = m.import(batch_of(2));
  ASSERT_FALSE(imported);
  EXPECT_NE(imported.error().message().find("is 2"), std::string::npos);
}

TEST(OnnxBatch, OperatorThatIsNotUnderstoodBecomesAWarning) {
  TestModel m;
  m.input("x", {1, 4}).output("y", {1, 4});
  m.node("CumSum", {"x", "axis"}, {"y"});
  m.ints("axis", {1});
  const auto imported = m.import(batch_of(2));
  ASSERT_TRUE(imported) << imported.error().to_string();
  ASSERT_FALSE(imported->description.findings.empty());
  EXPECT_EQ(imported->description.findings.back().kind, ImportFinding::Kind::kWarning);
}

/// The message of a refused import with a batch of 2, which must name the node.
std::string refusal(const TestModel& m, std::string_view node) {
  const auto imported = m.import(batch_of(2));
  EXPECT_FALSE(imported);
  if (imported) return {};
  EXPECT_EQ(imported.error().code(), Code::kUnsupportedModel);
  EXPECT_NE(imported.error().message().find(node), std::string::npos)
      << imported.error().to_string();
  return std::string(imported.error().message());
}

TEST(OnnxBatch, ResizeToSizesOfOneCopyIsRefusedByName) {
  TestModel m;
  m.input("x", {1, 2, 2, 2}).input("skip", {1, 2, 4, 4}).output("y", {1, 2, 4, 4});
  m.ints("sizes", {1, 2, 4, 4});
  m.node("Resize", {"x", "", "", "sizes"}, {"r"});
  m.node("Add", {"r", "skip"}, {"y"});
  EXPECT_NE(refusal(m, "node_Resize1").find("dimension that holds the copies"), std::string::npos);
}

TEST(OnnxBatch, PaddingBetweenTheCopiesIsRefused) {
  TestModel m;
  m.input("x", {1, 2}).output("y", {1, 2});
  m.ints("pads", {0, 0, 2, 0});
  m.node("Pad", {"x", "pads"}, {"p"});
  m.ints("axes", {0});
  m.node("ReduceSum", {"p", "axes"}, {"y"});
  refusal(m, "node_Pad1");
}

TEST(OnnxBatch, ConstantOfAsManyRowsAsCopiesIsRefused) {
  TestModel m;
  m.input("x", {1, 4}).open_output("y");
  m.floats("rows", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  m.node("Add", {"x", "rows"}, {"y"});
  refusal(m, "node_Add1");

  TestModel one;
  one.input("x", {1, 4}).output("y", {1, 4});
  one.floats("rows", {1, 4}, {1, 2, 3, 4});
  one.node("Add", {"x", "rows"}, {"y"});
  EXPECT_TRUE(one.import(batch_of(2)));
}

ImportOptions sizes(std::uint32_t low, std::uint32_t high) {
  ImportOptions options;
  options.batch_range = BatchRange{low, high};
  return options;
}

/// The message of a model that refuses the sizes 1 to 8.
std::string range_refusal(const TestModel& m) {
  const auto imported = m.import(sizes(1, 8));
  EXPECT_FALSE(imported);
  if (imported) return {};
  EXPECT_EQ(imported.error().code(), Code::kUnsupportedModel);
  return std::string(imported.error().message());
}

/// The values of the constant that the rewriter gave the only Reshape.
std::vector<std::int64_t> reshape_dims(const TestModel& m) {
  const auto imported = m.import(sizes(1, 8));
  EXPECT_TRUE(imported) << (imported ? "" : imported.error().to_string());
  ::onnx::ModelProto model;
  if (!imported ||
      !model.ParseFromArray(imported->graph.data(), static_cast<int>(imported->graph.size())))
    return {};
  for (const auto& t : model.graph().initializer())
    if (t.name().starts_with("corelane:batch/"))
      return read_ints(t, imported->constants).value_or(std::vector<std::int64_t>());
  return {};
}

TEST(OnnxBatchRange, OpensDimensionZeroOfInputsAndOutputs) {
  TestModel m;
  m.input("x", {1, 4}).input("y", {"n", 4}).output("z", {1, 4});
  m.node("Add", {"x", "y"}, {"z"});
  const auto imported = m.import(sizes(1, 8));
  ASSERT_TRUE(imported) << imported.error().to_string();
  const auto& d = imported->description;
  EXPECT_EQ(d.batch_range, (BatchRange{1, 8}));
  EXPECT_EQ(d.batch, 1U);
  for (const auto* entry : {&d.inputs[0], &d.inputs[1], &d.outputs[0]}) {
    EXPECT_EQ(entry->desc.shape, (Shape{Shape::kOpen, 4})) << entry->desc.name;
    EXPECT_EQ(entry->desc.dim_names[0], "batch") << entry->desc.name;
  }
}

TEST(OnnxBatchRange, ReshapeTakesTheSizeFromItsData) {
  TestModel m;
  m.input("x", {1, 2, 3}).output("y", {1, 6});
  m.ints("shape", {1, -1});
  m.node("Reshape", {"x", "shape"}, {"y"});
  EXPECT_EQ(reshape_dims(m), (std::vector<std::int64_t>{0, -1}));
}

TEST(OnnxBatchRange, ReshapeOfMergedCopiesLeavesTheSizeToTheData) {
  // [1, 4, 3] -> [4, 3] by a -1, where dimension 0 is four times the copies, and back.
  TestModel m;
  m.input("x", {1, 4, 3}).output("y", {1, 4, 3});
  m.ints("rows", {-1, 3});
  m.node("Reshape", {"x", "rows"}, {"r"});
  m.ints("shape", {1, 4, 3});
  m.node("Reshape", {"r", "shape"}, {"y"});
  EXPECT_EQ(reshape_dims(m), (std::vector<std::int64_t>{-1, 4, 3}));

  TestModel twice;
  twice.input("x", {1, 4, 3}).output("y", {1, 4, 3});
  twice.ints("rows", {-1, 3});
  twice.node("Reshape", {"x", "rows"}, {"r"});
  twice.ints("shape", {1, -1, 3});
  twice.node("Reshape", {"r", "shape"}, {"y"});
  EXPECT_NE(range_refusal(twice).find("node_Reshape2"), std::string::npos);
}

TEST(OnnxBatchRange, ShapeThatFixesTheCopiesIsRefusedByName) {
  TestModel m;
  m.input("x", {1, 4, 3}).output("y", {4, 3});
  m.ints("shape", {4, 3});
  m.node("Reshape", {"x", "shape"}, {"y"});
  const std::string message = range_refusal(m);
  EXPECT_NE(message.find("batch 1 to 8: node node_Reshape"), std::string::npos) << message;
  EXPECT_NE(message.find("fixes the number of copies"), std::string::npos) << message;
}

TEST(OnnxBatchRange, OutputThatCannotBeFollowedIsRefusedWithTheNode) {
  TestModel m;
  m.input("x", {1, 4}).output("y", {1, 4});
  m.ints("axis", {1});
  m.node("CumSum", {"x", "axis"}, {"s"});
  m.node("Relu", {"s"}, {"y"});
  const std::string message = range_refusal(m);
  EXPECT_NE(message.find("(CumSum)"), std::string::npos) << message;
  EXPECT_NE(message.find("'y'"), std::string::npos) << message;
}

TEST(OnnxBatchRange, ModelWithOpenRowsIsTakenAtItsWord) {
  TestModel m;
  m.input("x", {"n", 4}).output("y", {"n", 4});
  m.ints("axis", {1});
  m.node("CumSum", {"x", "axis"}, {"y"});
  const auto imported = m.import(sizes(2, 4));
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->description.batch_range, (BatchRange{2, 4}));
  EXPECT_TRUE(imported->description.findings.empty());
}

TEST(OnnxBatchRange, AnotherOpenDimensionIsRefusedByName) {
  TestModel m;
  m.input("x", {1, "w"}).output("y", {1, "w"});
  m.node("Relu", {"x"}, {"y"});
  EXPECT_NE(range_refusal(m).find("'x' [1, ?] leaves dimension 1 open"), std::string::npos);
  ImportOptions options = sizes(1, 8);
  options.dims["w"] = 4;
  EXPECT_TRUE(m.import(options));
}

TEST(OnnxBatchRange, OptionsThatContradictItAreRefused) {
  TestModel m;
  m.input("x", {1, 4}).output("y", {1, 4});
  m.node("Relu", {"x"}, {"y"});
  std::vector<ImportOptions> wrong = {sizes(0, 8), sizes(4, 3), sizes(1, 1025), sizes(1, 8),
                                      sizes(1, 8)};
  wrong[3].batch = 2;
  wrong[4].shape_sets = {{{1, 4}}};
  for (const ImportOptions& options : wrong) {
    const auto imported = m.import(options);
    ASSERT_FALSE(imported);
    EXPECT_EQ(imported.error().code(), Code::kInvalidArgument) << imported.error().to_string();
  }
}

TEST(OnnxBatch, MalformedNodesAreRefusedWithoutACrash) {
  TestModel gather;
  gather.input("x", {1, 4}).floats("data", {3, 4}, std::vector<double>(12, 1)).ints("at", {0});
  gather.open_output("y").node("Gather", {"data", "at", "x"}, {"y"});
  static_cast<void>(gather.import(batch_of(2)));
  for (const char* op : {"Add", "MatMul", "Reshape", "Relu", "Constant"}) {
    TestModel m;
    m.input("x", {1, 4}).output("y", {1, 4});
    m.node("Relu", {"x"}, {"y"});
    m.node(op, {"x", "x"}, {});
    static_cast<void>(m.import(batch_of(2)));
  }
}

}  // namespace
}  // namespace corelane::onnx
