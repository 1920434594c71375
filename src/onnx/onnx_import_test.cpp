#include "corelane/onnx/onnx_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;
using testing::HasSubstr;

TestModel relu() {
  TestModel m;
  m.input("x", {"N", 3, 8, 8}).output("y", {"N", 3, 8, 8});
  m.node("Relu", {"x"}, {"y"});
  return m;
}

/// y = x + w, w of `n` floats.
TestModel add_constant(std::int64_t n) {
  TestModel m;
  m.input("x", {n}).output("y", {n});
  std::vector<double> w;
  for (std::int64_t i = 0; i < n; ++i) w.push_back(static_cast<double>(i));
  m.floats("w", {n}, w);
  m.node("Add", {"x", "w"}, {"y"});
  return m;
}

TEST(OnnxImport, DescribesInputsOutputsAndOrigin) {
  TestModel m = relu();
  m.proto().set_producer_version("2.1");
  m.proto().set_domain("ai.test");
  m.proto().set_doc_string("a model");
  m.proto().mutable_graph()->set_doc_string("a graph");
  auto& entry = *m.proto().add_metadata_props();
  entry.set_key("labels");
  entry.set_value("a,b");
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  const ProgramDescription& d = imported->description;
  EXPECT_EQ(d.name, "g");
  EXPECT_EQ(d.producer, "test 2.1");
  EXPECT_EQ(d.origin, (ModelOrigin{"test", "2.1", "ai.test", "a model", "a graph", {}}));
  EXPECT_EQ(d.opset, 17);
  EXPECT_EQ(d.node_count, 1u);
  EXPECT_EQ(d.metadata.at("labels"), "a,b");
  m.proto().set_model_version(7);
  EXPECT_EQ(m.import()->description.origin.version, 7);
  ASSERT_EQ(d.inputs.size(), 1u);
  EXPECT_EQ(d.inputs[0].desc.name, "x");
  EXPECT_EQ(d.inputs[0].desc.shape, (Shape{-1, 3, 8, 8}));
  EXPECT_EQ(d.inputs[0].desc.dim_names[0], "N");
  EXPECT_EQ(d.inputs[0].desc.dtype, DType::kF32);
  EXPECT_EQ(d.inputs[0].reported_dtype, DType::kF16);
  EXPECT_EQ(d.inputs[0].preferred_layout, LayoutKind::kNHWC);
  EXPECT_EQ(d.outputs[0].preferred_layout, LayoutKind::kPlain);
}

TEST(OnnxImport, IoDtypeIsWhatFloatsReport) {
  ImportOptions options;
  options.io_dtype = DType::kF32;
  EXPECT_EQ(relu().import(options)->description.inputs[0].reported_dtype, DType::kF32);
  options.io_dtype = DType::kI8;
  EXPECT_EQ(relu().import(options).error().code(), Code::kInvalidArgument);
}

TEST(OnnxImport, InputLayoutIsWhatRankFourInputsAreOfferedIn) {
  ImportOptions options;
  options.input_layout = LayoutKind::kPlain;
  EXPECT_EQ(relu().import(options)->description.inputs[0].preferred_layout, LayoutKind::kPlain);
}

TEST(OnnxImport, InitialisersAreNoInputs) {
  TestModel m = add_constant(4);
  m.input("w", {4});
  const auto imported = m.import();
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->description.inputs.size(), 1u);
}

TEST(OnnxImport, LargeTensorsMoveToAlignedConstants) {
  const auto imported = add_constant(1000).import();
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->constants.size(), 4000u);
  EXPECT_EQ(imported->description.constant_bytes, 4000u);
  const auto tensor = graph_of(*imported).initializer(0);
  EXPECT_EQ(tensor.data_location(), T::EXTERNAL);
  EXPECT_TRUE(tensor.raw_data().empty());
  EXPECT_EQ(tensor.external_data(0).value(), kConstantsLocation);
  EXPECT_EQ(tensor.external_data(1).value(), "0");
}

TEST(OnnxImport, SmallTensorsStay) {
  const auto imported = add_constant(255).import();
  ASSERT_TRUE(imported);
  EXPECT_TRUE(imported->constants.empty());
  EXPECT_EQ(graph_of(*imported).initializer(0).raw_data().size(), 1020u);
}

TEST(OnnxImport, TypedDataBecomeRaw) {
  TestModel m;
  m.input("x", {2}).output("y", {2});
  auto& w = *m.graph().add_initializer();
  w.set_name("w");
  w.set_data_type(T::FLOAT16);
  w.add_dims(2);
  w.add_int32_data(0x3C00);
  w.add_int32_data(0xC000);
  auto& cast = m.node("Cast", {"w"}, {"c"});
  set_attribute(cast, "to", std::int64_t{T::FLOAT});
  m.node("Add", {"x", "c"}, {"y"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(graph_of(*imported).initializer(0).raw_data(), std::string("\x00\x3C\x00\xC0", 4));
}

TEST(OnnxImport, InliningRestoresTheConstants) {
  const auto imported = add_constant(1000).import();
  ASSERT_TRUE(imported);
  const auto whole = inline_constants(imported->graph, imported->constants);
  ASSERT_TRUE(whole) << whole.error().to_string();
  ::onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromArray(whole->data(), static_cast<int>(whole->size())));
  const auto& tensor = model.graph().initializer(0);
  EXPECT_FALSE(is_external(tensor));
  ASSERT_EQ(tensor.raw_data().size(), 4000u);
  EXPECT_EQ(read_floats(tensor, {})->at(999), 999.0);
}

TEST(OnnxImport, InliningRefusesConstantsThatAreTooShort) {
  const auto imported = add_constant(1000).import();
  ASSERT_TRUE(imported);
  const auto cut = inline_constants(imported->graph, ByteSpan(imported->constants).first(100));
  EXPECT_EQ(cut.error().code(), Code::kMalformed);
}

TEST(OnnxImport, EveryTruncationIsAnError) {
  const ByteVector bytes = add_constant(64).bytes();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const auto imported = import_onnx(ByteSpan(bytes).first(n));
    // A cut between two fields of the model may leave a shorter model that is whole.
    if (imported) continue;
    EXPECT_NE(imported.error().code(), Code::kInternal) << n;
  }
  EXPECT_FALSE(import_onnx(ByteSpan(bytes).first(bytes.size() / 2)));
}

TEST(OnnxImport, UnknownFieldsAreKept) {
  const ByteVector plain = relu().bytes();
  ByteVector bytes = plain;
  for (const int b : {0x82, 0x7D, 0x03, 0x61, 0x62, 0x63})
    bytes.push_back(static_cast<std::byte>(b));
  const auto imported = import_onnx(bytes);
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_NE(as_string_view(imported->graph).find("abc"), std::string_view::npos);
}

TEST(OnnxImport, RubbishIsMalformed) {
  EXPECT_EQ(import_onnx({}).error().code(), Code::kMalformed);
  EXPECT_EQ(import_onnx(as_byte_span("this is no model")).error().code(), Code::kMalformed);
}

TEST(OnnxImport, TensorShorterThanItsShapeIsMalformed) {
  TestModel m = add_constant(4);
  m.graph().mutable_initializer(0)->mutable_raw_data()->resize(12);
  const auto imported = m.import();
  EXPECT_EQ(imported.error().code(), Code::kMalformed);
  EXPECT_THAT(imported.error().message(), HasSubstr("'w'"));
  EXPECT_THAT(imported.error().message(), HasSubstr("16"));
}

TEST(OnnxImport, NegativeAndOverflowingDimensionsAreMalformed) {
  TestModel negative = add_constant(4);
  negative.graph().mutable_initializer(0)->set_dims(0, -4);
  EXPECT_EQ(negative.import().error().code(), Code::kMalformed);
  TestModel huge = add_constant(4);
  for (int i = 0; i < 4; ++i) huge.graph().mutable_initializer(0)->add_dims(std::int64_t{1} << 62);
  EXPECT_EQ(huge.import().error().code(), Code::kMalformed);
}

TEST(OnnxImport, ValueReadBeforeItIsMadeIsMalformed) {
  TestModel m = relu();
  m.graph().mutable_node(0)->set_input(0, "nowhere");
  const auto imported = m.import();
  EXPECT_EQ(imported.error().code(), Code::kMalformed);
  EXPECT_THAT(imported.error().message(), HasSubstr("'nowhere'"));
}

TEST(OnnxImport, ValueMadeTwiceIsMalformed) {
  TestModel m = relu();
  m.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(m.import().error().code(), Code::kMalformed);
}

/// As a program describes a value in its flat form.
void expect_flat(const TensorDesc& desc, std::string_view type) {
  EXPECT_EQ(desc.value.to_string(), type);
  EXPECT_EQ(desc.dtype, DType::kU8);
  EXPECT_EQ(desc.shape, Shape{Shape::kOpen});
  EXPECT_TRUE(desc.dim_names.empty());
}

TEST(OnnxImport, StringsAreDescribedAsFlatFormsWithTheirOwnShape) {
  TestModel m;
  m.input("words", {2}, T::STRING).output("y", {2}, T::STRING);
  m.node("Identity", {"words"}, {"y"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  for (const IoEntry* io : {&imported->description.inputs[0], &imported->description.outputs[0]}) {
    expect_flat(io->desc, "tensor(string)");
    EXPECT_EQ(io->desc.value.shape, Shape{2});
    EXPECT_EQ(io->reported_dtype, DType::kU8);
  }
}

TEST(OnnxImport, SequencesMapsAndInputsWithoutRankAreDescribedAsFlatForms) {
  TestModel m = relu();
  auto& in = *m.graph().mutable_input(0)->mutable_type();
  in.mutable_tensor_type()->clear_shape();
  auto& out = *m.graph().mutable_output(0)->mutable_type();
  auto& map = *out.mutable_sequence_type()->mutable_elem_type()->mutable_map_type();
  map.set_key_type(T::INT64);
  map.mutable_value_type()->mutable_tensor_type()->set_elem_type(T::FLOAT);
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  expect_flat(imported->description.inputs[0].desc, "tensor(float)");
  EXPECT_FALSE(imported->description.inputs[0].desc.value.shape);
  expect_flat(imported->description.outputs[0].desc, "seq(map(int64,tensor(float)))");
}

TEST(OnnxImport, ValuesHaveNoBatch) {
  TestModel m;
  m.input("words", {1}, T::STRING).output("y", {1}, T::STRING);
  m.node("Identity", {"words"}, {"y"});
  ImportOptions options;
  options.batch = 4;
  EXPECT_FALSE(m.import(options));
}

TEST(OnnxImport, TypesOfNoValueAreRefusedByName) {
  TestModel sparse = relu();
  sparse.graph().mutable_input(0)->mutable_type()->mutable_sparse_tensor_type();
  const auto refused = sparse.import();
  EXPECT_EQ(refused.error().code(), Code::kUnsupportedModel);
  EXPECT_THAT(refused.error().message(), HasSubstr("'x'"));
  TestModel hollow = relu();
  hollow.graph().mutable_input(0)->mutable_type()->mutable_sequence_type();
  EXPECT_EQ(hollow.import().error().code(), Code::kUnsupportedModel);
}

TEST(OnnxImport, TypesThatNoConversionReadsAreDescribedAndNotNormalised) {
  for (const auto type : {T::FLOAT8E4M3FN, T::FLOAT8E8M0, T::FLOAT4E2M1, T::INT2, T::UINT2}) {
    TestModel m;
    m.input("x", {1, 3, 2, 2}, type).output("y", {1, 3, 2, 2}, type);
    m.node("Identity", {"x"}, {"y"});
    ImportOptions options;
    options.mean[""] = {1, 2, 3};
    options.input_layout = LayoutKind::kNHWC;
    const auto imported = m.import(options);
    ASSERT_TRUE(imported) << imported.error().to_string();
    const IoEntry& input = imported->description.inputs[0];
    EXPECT_EQ(input.desc.dtype, dtype_from_onnx(type));
    EXPECT_EQ(input.reported_dtype, input.desc.dtype);
    EXPECT_TRUE(input.mean.empty());
    EXPECT_EQ(input.preferred_layout, LayoutKind::kPlain);
    options.mean = {{"x", {1}}};
    EXPECT_EQ(m.import(options).error().code(), Code::kInvalidArgument);
  }
}

TEST(OnnxImport, MeanAndStdBelongToRankFourInputs) {
  ImportOptions options;
  options.mean[""] = {1, 2, 3};
  options.std["x"] = {2};
  const auto imported = relu().import(options);
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->description.inputs[0].mean, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(imported->description.inputs[0].std, std::vector<float>{2});
  options.mean[""] = {1, 2};
  EXPECT_EQ(relu().import(options).error().code(), Code::kInvalidArgument);
  options.mean[""] = {1};
  for (const float bad : {0.0F, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    options.std["x"] = {bad};
    EXPECT_THAT(relu().import(options).error().message(), HasSubstr("other than 0"));
  }
  options.std["x"] = {1};
  options.mean[""] = {std::nanf("")};
  EXPECT_THAT(relu().import(options).error().message(), HasSubstr("mean for input 'x' holds nan"));
  options.mean[""] = {1};
  options.std = {{"z", {1.0f}}};
  EXPECT_THAT(relu().import(options).error().message(), HasSubstr("'z'"));
}

TEST(OnnxImport, OptionsOutOfRangeAreRefused) {
  ImportOptions options;
  options.custom_string = std::string(1023, 'a');
  EXPECT_TRUE(relu().import(options));
  options.custom_string += 'a';
  EXPECT_EQ(relu().import(options).error().code(), Code::kInvalidArgument);
  options.custom_string.clear();
  options.cores = 0;
  EXPECT_EQ(relu().import(options).error().code(), Code::kInvalidArgument);
}

TEST(OnnxImport, MultiplyAccumulatesAreCountedAtStaticShapes) {
  TestModel m;
  m.input("x", {1, 3, 8, 8}).open_output("y");
  m.floats("w", {4, 3, 3, 3}, std::vector<double>(108, 1.0));
  m.node("Conv", {"x", "w"}, {"y"});
  const auto imported = m.import();
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->description.macs, 4u * 6 * 6 * 27);
  EXPECT_EQ(imported->description.outputs[0].desc.shape, (Shape{1, 4, 6, 6}));
}

TEST(OnnxImport, MissingFileIsNotFound) {
  EXPECT_EQ(import_onnx_file("/nonexistent/model.onnx").error().code(), Code::kNotFound);
}

TEST(OnnxImport, OutputOfUnknownRankIsNotPassedOffAsAScalar) {
  TestModel m;
  m.input("x", {2, 3}).input("s", {"n"}, ::onnx::TensorProto::INT64).open_output("y");
  m.node("Reshape", {"x", "s"}, {"y"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  ASSERT_EQ(imported->description.findings.size(), 1U);
  const auto& finding = imported->description.findings[0];
  EXPECT_EQ(finding.kind, ImportFinding::Kind::kWarning);
  EXPECT_EQ(finding.node, "y");
  EXPECT_NE(finding.text.find("rank is not known"), std::string::npos);

  TestModel scalar;
  scalar.input("x", {}).output("y", {}).node("Relu", {"x"}, {"y"});
  EXPECT_TRUE(scalar.import()->description.findings.empty());
}

/// The list informs; with one more the model could not be compiled.
TEST(OnnxImport, OverridableInitializersBeyondAFilesLimitAreLeftOut) {
  TestModel model;
  model.input("x", {1}).output("y", {1}).node("Relu", {"x"}, {"y"});
  for (int i = 0; i < 4097; ++i) {
    const std::string name = "c" + std::to_string(i);
    model.input(name, {1}).floats(name, {1}, {1});
  }
  const auto imported = import_onnx(model.bytes(), {});
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->description.inputs.size(), 1U);
  EXPECT_EQ(imported->description.overridable.size(), 4096U);
}

}  // namespace
}  // namespace corelane::onnx
