#include "onnx/onnx_lent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/onnx_fields.h"
#include "base/wire.h"
#include "onnx/graph/onnx_constants.h"
#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kLarge = 5000;  // Floats: 20 kB.

std::vector<double> values(double first) {
  std::vector<double> v(kLarge);
  std::iota(v.begin(), v.end(), first);
  return v;
}

/// Two large initializers around a small one.
TestModel two_large() {
  TestModel m;
  m.input("x", {kLarge}).output("z", {kLarge});
  m.floats("a", {kLarge}, values(0)).floats("s", {1}, {7}).floats("b", {kLarge}, values(100));
  m.node("Add", {"x", "a"}, {"y"});
  m.node("Add", {"y", "b"}, {"t"});
  m.node("Add", {"t", "s"}, {"z"});
  return m;
}

ExternalData nowhere() { return {{}, {}, false}; }

TEST(OnnxLent, LargeWeightsStayWhereTheyLie) {
  TestModel m = two_large();
  const std::string bytes = m.proto().SerializeAsString();
  ::onnx::ModelProto model;
  ExternalData external = nowhere();
  ASSERT_TRUE(parse_lending(as_byte_span(bytes), model, external).ok());
  const auto& tensors = model.graph().initializer();
  ASSERT_EQ(tensors.size(), 3);
  EXPECT_EQ(tensors[1].raw_data().size(), 4U);
  for (const int i : {0, 2}) {
    EXPECT_TRUE(is_external(tensors[i]));
    EXPECT_TRUE(tensors[i].raw_data().empty());
    const auto data = external.bytes_of(tensors[i]);
    ASSERT_TRUE(data) << data.error().to_string();
    EXPECT_GE(data->data(), as_byte_span(bytes).data());
    EXPECT_LE(data->data() + data->size(), as_byte_span(bytes).data() + bytes.size());
    EXPECT_EQ(as_string_view(*data), m.graph().initializer(i).raw_data());
  }
}

/// True where the initializer at `index` of what is parsed holds none of its data.
bool is_lent(TestModel& m, int index) {
  const std::string bytes = m.proto().SerializeAsString();
  ::onnx::ModelProto model;
  ExternalData external = nowhere();
  const Status parsed = parse_lending(as_byte_span(bytes), model, external);
  EXPECT_TRUE(parsed.ok()) << parsed.to_string();
  const auto& tensor = model.graph().initializer(index);
  return is_external(tensor) && tensor.raw_data().empty() && tensor.float_data().empty();
}

/// As ONNX Runtime's quantization tools write it.
TEST(OnnxLent, AWeightThatSaysThatItLiesInTheFileIsLent) {
  TestModel m = two_large();
  m.graph().mutable_initializer(0)->set_data_location(::onnx::TensorProto::DEFAULT);
  EXPECT_TRUE(is_lent(m, 0));
}

TEST(OnnxLent, PackedFloatsAreLentAndImportedAsRawDataAre) {
  TestModel m = two_large();
  const auto raw = import_onnx(as_byte_span(m.proto().SerializeAsString()));
  auto& tensor = *m.graph().mutable_initializer(2);
  tensor.clear_raw_data();
  for (const double v : values(100)) tensor.add_float_data(static_cast<float>(v));
  EXPECT_TRUE(is_lent(m, 2));
  const auto packed = import_onnx(as_byte_span(m.proto().SerializeAsString()));
  ASSERT_TRUE(raw) << raw.error().to_string();
  ASSERT_TRUE(packed) << packed.error().to_string();
  EXPECT_EQ(packed->constants, raw->constants);
  EXPECT_EQ(packed->graph, raw->graph);
}

/// Two floats make one number.
TEST(OnnxLent, PackedFloatsOfAnotherTypeAreNotLent) {
  TestModel m = two_large();
  auto& tensor = *m.graph().mutable_initializer(2);
  tensor.clear_raw_data();
  tensor.set_data_type(::onnx::TensorProto::COMPLEX64);
  for (int i = 0; i < 2 * kLarge; ++i) tensor.add_float_data(1.0F);
  EXPECT_FALSE(is_lent(m, 2));
}

TEST(OnnxLent, PackedFloatsBesideRawDataAreNotLent) {
  TestModel m = two_large();
  for (int i = 0; i < kLarge; ++i) m.graph().mutable_initializer(2)->add_float_data(1.0F);
  EXPECT_FALSE(is_lent(m, 2));
}

/// x + the value of a Constant node with an attribute before it.
TestModel large_constant_node() {
  TestModel m;
  m.input("x", {kLarge}).output("y", {kLarge});
  auto& node = m.node("Constant", {}, {"c"});
  auto& value = *node.add_attribute();
  value.set_name("value");
  value.set_type(::onnx::AttributeProto::TENSOR);
  *value.mutable_t() = make_values("c", ::onnx::TensorProto::FLOAT, {kLarge}, values(0));
  m.node("Add", {"x", "c"}, {"y"});
  return m;
}

TEST(OnnxLent, TheTensorOfAConstantNodeStaysWhereItLies) {
  TestModel m = large_constant_node();
  const std::string bytes = m.proto().SerializeAsString();
  ::onnx::ModelProto model;
  ExternalData external = nowhere();
  ASSERT_TRUE(parse_lending(as_byte_span(bytes), model, external).ok());
  ASSERT_EQ(model.graph().node_size(), 2);
  const auto& tensor = model.graph().node(0).attribute(0).t();
  EXPECT_TRUE(is_external(tensor));
  const auto data = external.bytes_of(tensor);
  ASSERT_TRUE(data) << data.error().to_string();
  EXPECT_EQ(as_string_view(*data), m.graph().node(0).attribute(0).t().raw_data());
  const auto imported = import_onnx(as_byte_span(bytes));
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->constants.size(), kLarge * sizeof(float));
}

/// Protobuf makes one of the two, with the data of the second.
TEST(OnnxLent, OfTwoTensorsInOneAttributeNoneIsLent) {
  using enum onnx_fields::Number;
  TestModel m = large_constant_node();
  const ::onnx::AttributeProto value = m.graph().node(0).attribute(0);
  m.graph().mutable_node()->DeleteSubrange(0, 1);
  ::onnx::TensorProto second;
  second.set_raw_data(make_values("", ::onnx::TensorProto::FLOAT, {kLarge}, values(9)).raw_data());
  std::string attribute = value.SerializeAsString();
  append_bytes_field(attribute, kAttributeTensor, second.SerializeAsString());
  std::string node;
  append_bytes_field(node, kNodeOutput, "c");
  append_bytes_field(node, kNodeOpType, "Constant");
  append_bytes_field(node, kNodeAttribute, attribute);
  std::string graph = m.graph().SerializeAsString();
  append_bytes_field(graph, kGraphNode, node);
  m.graph().Clear();
  std::string bytes = m.proto().SerializeAsString();
  append_bytes_field(bytes, kModelGraph, graph);
  const auto imported = import_onnx(as_byte_span(bytes));
  ASSERT_TRUE(imported) << imported.error().to_string();
  ASSERT_EQ(imported->constants.size(), kLarge * sizeof(float));
  EXPECT_EQ(reinterpret_cast<const float*>(imported->constants.data())[1], 10.0F);
}

/// A text beside its data keeps a tensor from being lent.
TEST(OnnxLent, TheImportIsTheSameAsOfWeightsThatAreCopied) {
  TestModel lent = two_large();
  TestModel copied = two_large();
  for (auto& tensor : *copied.graph().mutable_initializer()) tensor.set_doc_string("kept");
  const auto a = import_onnx(as_byte_span(lent.proto().SerializeAsString()));
  const auto b = import_onnx(as_byte_span(copied.proto().SerializeAsString()));
  ASSERT_TRUE(a) << a.error().to_string();
  ASSERT_TRUE(b) << b.error().to_string();
  EXPECT_EQ(a->constants, b->constants);
  ::onnx::ModelProto graph;
  ASSERT_TRUE(graph.ParseFromArray(b->graph.data(), static_cast<int>(b->graph.size())));
  for (auto& tensor : *graph.mutable_graph()->mutable_initializer()) tensor.clear_doc_string();
  EXPECT_EQ(as_string_view(a->graph), graph.SerializeAsString());
}

TEST(OnnxLent, AGraphInTwoPiecesIsOneGraph) {
  TestModel first = two_large();
  TestModel second;
  second.floats("c", {kLarge}, values(3)).output("w", {kLarge});
  second.node("Add", {"z", "c"}, {"w"});
  const std::string bytes = first.proto().SerializeAsString() + second.proto().SerializeAsString();
  const auto imported = import_onnx(as_byte_span(bytes));
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->description.outputs.size(), 2U);
  EXPECT_GE(imported->constants.size(), 3 * kLarge * sizeof(float));
  const auto* c = reinterpret_cast<const float*>(imported->constants.data() +
                                                 imported->constants.size() - kLarge * 4);
  EXPECT_EQ(c[1], 4.0F);
}

TEST(OnnxLent, DataThatDoNotFitTheShapeAreRefusedAsAnyOthers) {
  TestModel m = two_large();
  m.graph().mutable_initializer(2)->set_dims(0, kLarge - 1);
  const auto imported = import_onnx(as_byte_span(m.proto().SerializeAsString()));
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().code(), Code::kMalformed);
  EXPECT_THAT(imported.error().to_string(), HasSubstr("'b'"));
  EXPECT_THAT(imported.error().to_string(), HasSubstr("the file holds 20000"));
}

TEST(OnnxLent, NoTensorOfAFileLiesInTheModelByItsOwnWord) {
  TestModel m = two_large();
  refer_to(*m.graph().mutable_initializer(1), kLentLocation, 0, 4);
  const auto imported = import_onnx(as_byte_span(m.proto().SerializeAsString()));
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().code(), Code::kMalformed);
  EXPECT_THAT(imported.error().to_string(), HasSubstr("'s'"));
}

TEST(OnnxLent, OfWeightsOfOneNameTheLastStays) {
  TestModel m = two_large();
  m.floats("a", {kLarge}, values(1000));
  const auto imported = import_onnx(as_byte_span(m.proto().SerializeAsString()));
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->constants.size(), 40032U);  // Two of 20,000, the second at a multiple of 64.
  const auto* last = reinterpret_cast<const float*>(imported->constants.data() + 20032);
  EXPECT_EQ(last[0], 1000.0F);
}

}  // namespace
}  // namespace corelane::onnx
