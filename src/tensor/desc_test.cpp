#include "corelane/tensor/desc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace corelane {
namespace {

TEST(DType, NamesRoundTripAndAliasesAreKnown) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(dtype_name(t)), t);
  }
  EXPECT_EQ(dtype_from_name("float32"), DType::kF32);
  EXPECT_EQ(dtype_from_name("boolean"), DType::kBool);
  EXPECT_EQ(dtype_from_name("half"), DType::kF16);
  EXPECT_EQ(dtype_from_name("complex64"), std::nullopt);
  EXPECT_EQ(dtype_from_name("float8_e5m2"), DType::kF8E5M2);
  EXPECT_EQ(dtype_from_name("int2"), DType::kI2);
  EXPECT_EQ(dtype_name(static_cast<DType>(kDTypeCount)), "undefined");
}

TEST(DType, OnnxNumbersAreThoseOfOnnxProto) {
  // TensorProto.DataType, from 0 on; kUndefined where Corelane has no such type.
  using enum DType;
  const DType of_number[] = {kUndefined,  kF32,    kU8,         kI8,        kU16,  kI16,
                             kI32,        kI64,    kString,     kBool,      kF16,  kF64,
                             kU32,        kU64,    kUndefined,  kUndefined, kBF16, kF8E4M3FN,
                             kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ, kU4,        kI4,   kF4E2M1,
                             kF8E8M0,     kU2,     kI2,         kUndefined};
  for (int number = 0; number < static_cast<int>(std::size(of_number)); ++number) {
    EXPECT_EQ(dtype_from_onnx(number), of_number[number]);
    if (of_number[number] != kUndefined) EXPECT_EQ(onnx_type_of(of_number[number]), number);
  }
  EXPECT_EQ(dtype_from_onnx(-1), DType::kUndefined);
  EXPECT_EQ(onnx_type_of(DType::kUndefined), 0);
}

TEST(DType, BytesPadNibblesAndSaturate) {
  EXPECT_EQ(dtype_bytes(DType::kI4, 3), 2U);
  EXPECT_EQ(dtype_bytes(DType::kU4, 4), 2U);
  EXPECT_EQ(dtype_bytes(DType::kF64, 3), 24U);
  EXPECT_EQ(dtype_bytes(DType::kString, 3), 0U);
  EXPECT_EQ(dtype_bytes(DType::kF64, SIZE_MAX), SIZE_MAX);
  EXPECT_EQ(dtype_bytes(DType::kI4, SIZE_MAX), SIZE_MAX / 2 + 1);
  EXPECT_EQ(dtype_bits(DType::kBool), 8U);
  EXPECT_EQ(dtype_bytes(DType::kU2, 4), 1U);
  EXPECT_EQ(dtype_bytes(DType::kI2, 5), 2U);
  EXPECT_EQ(dtype_bytes(DType::kI2, SIZE_MAX), SIZE_MAX / 4 + 1);
  EXPECT_EQ(dtype_bytes(DType::kF4E2M1, 3), 2U);
  EXPECT_EQ(dtype_bytes(DType::kF8E8M0, 3), 3U);
}

TEST(DType, IntegersAndFloatsAreDisjoint) {
  for (std::size_t i = 0; i < kDTypeCount; ++i)
    EXPECT_FALSE(is_float(static_cast<DType>(i)) && is_integer(static_cast<DType>(i)));
  EXPECT_TRUE(is_integer(DType::kU4));
  EXPECT_FALSE(is_integer(DType::kBool));
  EXPECT_TRUE(is_float(DType::kBF16));
}

TEST(DType, OpaqueTypesAreNeitherFloatsNorIntegers) {
  std::size_t opaque = 0;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    if (!is_opaque(t)) continue;
    ++opaque;
    EXPECT_FALSE(is_float(t) || is_integer(t)) << dtype_name(t);
    EXPECT_GT(dtype_bits(t), 0U) << dtype_name(t);
  }
  EXPECT_EQ(opaque, 8U);
  EXPECT_FALSE(is_opaque(static_cast<DType>(kDTypeCount)));
}

TEST(Layout, NamesRoundTrip) {
  for (const auto k : {LayoutKind::kPlain, LayoutKind::kNHWC, LayoutKind::kNC1HWC2})
    EXPECT_EQ(layout_from_name(layout_name(k)), k);
  EXPECT_EQ(layout_from_name("chwn"), std::nullopt);
}

TEST(StorageBytes, CountsPaddingOfBlocksAndRows) {
  const Shape s{2, 19, 5, 7};
  EXPECT_EQ(storage_bytes(s, DType::kF32, {}).value(), 2U * 19 * 5 * 7 * 4);
  EXPECT_EQ(storage_bytes(s, DType::kI8, {LayoutKind::kPlain, 0, 10}).value(), 2U * 19 * 5 * 10);
  EXPECT_EQ(storage_bytes(s, DType::kI8, {LayoutKind::kNHWC, 0, 8}).value(), 2U * 5 * 8 * 19);
  EXPECT_EQ(storage_bytes(s, DType::kF16, {LayoutKind::kNC1HWC2, 8, 0}).value(),
            2U * 3 * 5 * 7 * 8 * 2);
  EXPECT_EQ(storage_bytes({0, 3, 2, 2}, DType::kI8, {LayoutKind::kNHWC, 0, 0}).value(), 0U);
  EXPECT_EQ(storage_bytes({}, DType::kF32, {}).value(), 4U);
  EXPECT_EQ(storage_bytes({3}, DType::kI4, {}).value(), 2U);
}

TEST(StorageBytes, RefusesLayoutsThatDoNotFit) {
  const auto code = [](const Shape& s, DType t, const Layout& l) {
    const auto r = storage_bytes(s, t, l);
    return r ? Code::kOk : r.error().code();
  };
  EXPECT_EQ(code({1, 2, 3}, DType::kI8, {LayoutKind::kNHWC, 0, 0}), Code::kInvalidArgument);
  EXPECT_EQ(code({1, 2, 3}, DType::kI8, {LayoutKind::kPlain, 0, 3}), Code::kInvalidArgument);
  EXPECT_EQ(code({1, 2, 3, 4}, DType::kI8, {LayoutKind::kNC1HWC2, 0, 0}), Code::kInvalidArgument);
  EXPECT_EQ(code({1, 2, 3, 4}, DType::kI8, {LayoutKind::kNHWC, 0, 3}), Code::kInvalidArgument);
  EXPECT_EQ(code({1, 2, 3, 4}, DType::kI4, {LayoutKind::kNHWC, 0, 0}), Code::kInvalidArgument);
  EXPECT_EQ(code({1, 2, 3, 4}, DType::kU4, {LayoutKind::kPlain, 0, 4}), Code::kInvalidArgument);
  EXPECT_EQ(code({1, 2, 3, 4}, DType::kI2, {LayoutKind::kNHWC, 0, 0}), Code::kInvalidArgument);
  EXPECT_EQ(code({1, -1}, DType::kI8, {}), Code::kInvalidArgument);
  EXPECT_EQ(code({1, -9}, DType::kI8, {}), Code::kInvalidArgument);
  EXPECT_EQ(code({1}, DType::kUndefined, {}), Code::kInvalidArgument);
  EXPECT_EQ(code({1}, DType::kString, {}), Code::kUnsupported);
  EXPECT_EQ(code({1, 1, 1, 1}, DType::kI8, {static_cast<LayoutKind>(9), 0, 0}),
            Code::kInvalidArgument);
  EXPECT_EQ(code({INT64_MAX, 9, 9, 9}, DType::kI8, {LayoutKind::kNHWC, 0, 0}),
            Code::kInvalidArgument);
  EXPECT_EQ(code({1, 1, 1, INT64_MAX / 2}, DType::kF64, {}), Code::kInvalidArgument);
}

TEST(StorageBytes, RowsOfSmallElementsMayEndInsideAByte) {
  EXPECT_TRUE(has_whole_rows({3, 2}, DType::kI4));
  EXPECT_FALSE(has_whole_rows({3, 3}, DType::kI4));
  EXPECT_FALSE(has_whole_rows({3}, DType::kU4));
  EXPECT_TRUE(has_whole_rows({3, 2, 2}, DType::kU2));
  EXPECT_FALSE(has_whole_rows({3, 3, 2}, DType::kI2));
  EXPECT_FALSE(has_whole_rows({3, -1}, DType::kI2));
  EXPECT_TRUE(has_whole_rows({3, -1}, DType::kF8E5M2));
  EXPECT_TRUE(has_whole_rows({-1, 3}, DType::kF32));
  EXPECT_TRUE(has_whole_rows({3, 0}, DType::kI4));
  EXPECT_FALSE(has_whole_rows({}, DType::kF32));
}

TEST(Quant, CheckNamesWhatDoesNotFit) {
  const Shape s{1, 3, 2, 2};
  EXPECT_TRUE(Quant::none().check(s).ok());
  EXPECT_TRUE(Quant::dfp(7).check(s).ok());
  EXPECT_TRUE(Quant::affine(0.5F, -3).check(s).ok());
  Quant q = Quant::affine(0.5F, 0);
  q.axis = 1;
  EXPECT_EQ(q.check(s).code(), Code::kInvalidArgument);
  q.scales = {1, 2, 3};
  EXPECT_EQ(q.check(s).code(), Code::kInvalidArgument);
  q.zero_points = {0, 0, 0};
  EXPECT_TRUE(q.check(s).ok());
  EXPECT_TRUE(q.check({1, Shape::kOpen}).ok());
  q.axis = 4;
  EXPECT_EQ(q.check(s).code(), Code::kInvalidArgument);
  q.axis = -1;
  EXPECT_EQ(q.check(s).code(), Code::kInvalidArgument);
  for (const float bad : {0.0F, -1.0F, std::numeric_limits<float>::infinity(), std::nanf("")})
    EXPECT_EQ(Quant::affine(bad, 0).check(s).code(), Code::kInvalidArgument) << bad;
}

TEST(TensorDesc, TextNamesEveryProperty) {
  TensorDesc d;
  d.name = "x";
  d.dtype = DType::kF32;
  d.shape = {1, 3, 224, 224};
  EXPECT_EQ(d.to_string(), "x: f32 [1, 3, 224, 224] plain");
  EXPECT_EQ(d.bytes().value(), 602112U);
  d.dtype = DType::kI8;
  d.layout = {LayoutKind::kNC1HWC2, 16, 256};
  d.quant = Quant::affine(0.25F, -3);
  EXPECT_EQ(d.to_string(),
            "x: i8 [1, 3, 224, 224] nc1hwc2 c2 16 w_stride 256 affine(scale 0.25, zero point -3)");
  EXPECT_EQ(Quant::dfp(5).to_string(), "dfp(fl 5)");
}

}  // namespace
}  // namespace corelane
