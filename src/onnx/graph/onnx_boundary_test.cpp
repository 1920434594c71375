#include "onnx/graph/onnx_boundary.h"

#include <gtest/gtest.h>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

/// x -> QuantizeLinear -> DequantizeLinear -> Relu -> QuantizeLinear -> DequantizeLinear -> y
TestModel quantised(std::int32_t type) {
  TestModel m;
  m.input("x", {1, 2, 4, 4}).output("y", {1, 2, 4, 4});
  m.floats("s", {}, {0.5}).typed("z", type, {}, {3});
  m.floats("t", {}, {0.25}).typed("u", type, {}, {0});
  m.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  m.node("DequantizeLinear", {"q", "s", "z"}, {"d"});
  m.node("Relu", {"d"}, {"r"});
  m.node("QuantizeLinear", {"r", "t", "u"}, {"p"});
  m.node("DequantizeLinear", {"p", "t", "u"}, {"y"});
  return m;
}

TEST(OnnxBoundary, QuantisedEndsAreDescribed) {
  const auto imported = quantised(T::INT8).import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  const auto& in = imported->description.inputs[0];
  EXPECT_EQ(in.desc.dtype, DType::kF32);
  EXPECT_EQ(in.quant_dtype, DType::kI8);
  EXPECT_EQ(in.quant, Quant::affine(0.5f, 3));
  EXPECT_EQ(in.reported_dtype, DType::kI8);
  const auto& out = imported->description.outputs[0];
  EXPECT_EQ(out.quant, Quant::affine(0.25f, 0));
  EXPECT_EQ(out.reported_dtype, DType::kI8);
}

TEST(OnnxBoundary, UnsignedAndWideFormsAreKnown) {
  EXPECT_EQ(quantised(T::UINT8).import()->description.inputs[0].quant_dtype, DType::kU8);
  EXPECT_EQ(quantised(T::INT16).import()->description.inputs[0].quant_dtype, DType::kI16);
}

TEST(OnnxBoundary, InputWithAnotherReaderStaysFloat) {
  TestModel m = quantised(T::INT8);
  m.output("z2", {1, 2, 4, 4});
  m.node("Relu", {"x"}, {"z2"});
  EXPECT_EQ(m.import().value().description.inputs[0].quant_dtype, DType::kUndefined);
}

TEST(OnnxBoundary, ParametersThatAreNotConstantStayFloat) {
  TestModel m;
  m.input("x", {4}).input("s", {}).output("y", {4}, T::UINT8);
  m.node("QuantizeLinear", {"x", "s"}, {"y"});
  EXPECT_EQ(m.import().value().description.inputs[0].quant_dtype, DType::kUndefined);
}

TEST(OnnxBoundary, ScalesPerChannelKeepTheirAxis) {
  TestModel m;
  m.input("x", {1, 2, 4, 4}).output("y", {1, 2, 4, 4});
  m.floats("s", {2}, {0.5, 0.25}).typed("z", T::INT8, {2}, {0, 1});
  m.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  m.node("DequantizeLinear", {"q", "s", "z"}, {"y"});
  const auto imported = m.import();
  ASSERT_TRUE(imported);
  const auto& in = imported->description.inputs[0];
  EXPECT_EQ(in.quant.axis, 1);
  EXPECT_EQ(in.quant.scales, (std::vector<float>{0.5f, 0.25f}));
  EXPECT_EQ(in.quant.zero_points, (std::vector<std::int32_t>{0, 1}));
}

TEST(OnnxBoundary, ParametersFromConstantNodesCount) {
  TestModel m;
  m.input("x", {4}).output("y", {4});
  auto& c = m.node("Constant", {}, {"s"});
  auto& a = *c.add_attribute();
  a.set_name("value");
  a.set_type(::onnx::AttributeProto::TENSOR);
  *a.mutable_t() = make_values("", T::FLOAT, {}, {0.5});
  m.node("QuantizeLinear", {"x", "s"}, {"q"});
  m.node("DequantizeLinear", {"q", "s"}, {"y"});
  const auto imported = m.import();
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->description.inputs[0].quant_dtype, DType::kU8);
  EXPECT_EQ(imported->description.outputs[0].quant_dtype, DType::kU8);
}

}  // namespace
}  // namespace corelane::onnx
