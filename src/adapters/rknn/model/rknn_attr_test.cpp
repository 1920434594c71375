#include "adapters/rknn/model/rknn_attr.h"

#include <gtest/gtest.h>

#include "adapters/rknn/api/rknn_chip.h"

namespace corelane::rknn {
namespace {

IoEntry entry(Shape shape, DType reported, LayoutKind preferred = LayoutKind::kPlain) {
  IoEntry e;
  e.desc.name = "t";
  e.desc.dtype = DType::kF32;
  e.desc.shape = std::move(shape);
  e.reported_dtype = reported;
  e.preferred_layout = preferred;
  return e;
}

IoEntry picture(Shape shape, DType reported = DType::kF16) {
  return entry(std::move(shape), reported, LayoutKind::kNHWC);
}

IoTensor input(const IoEntry& e) { return {&e, e.desc.shape, Side::kInput, 0}; }
IoTensor output(const IoEntry& e) { return {&e, e.desc.shape, Side::kOutput, 0}; }

std::vector<std::uint32_t> dims(const rknn_tensor_attr& attr) {
  return {attr.dims, attr.dims + attr.n_dims};
}
using Dims = std::vector<std::uint32_t>;

constexpr Chip kBig{};  // RK3588
constexpr Chip kSmall{.row_pixels = 8, .block_bytes = 8, .cores = 1, .core_masks = false};

TEST(RknnAttr, PictureInputIsToldAsNhwcWithPaddedRows) {
  const IoEntry e = picture({1, 3, 224, 226});
  const rknn_tensor_attr attr = normal_attr(input(e), kBig);
  EXPECT_EQ(attr.fmt, RKNN_TENSOR_NHWC);
  EXPECT_EQ(dims(attr), (Dims{1, 224, 226, 3}));
  EXPECT_EQ(attr.n_elems, 224U * 226 * 3);
  EXPECT_EQ(attr.size, 224U * 226 * 3 * 2);
  EXPECT_EQ(attr.w_stride, 240U);
  EXPECT_EQ(attr.size_with_stride, 224U * 240 * 3 * 2);
  EXPECT_EQ(normal_attr(input(e), kSmall).w_stride, 232U);
}

TEST(RknnAttr, RowsThatAreAlignedHaveTheWidthAsStrideNeverZero) {
  const IoEntry e = picture({1, 3, 224, 224});
  EXPECT_EQ(normal_attr(input(e), kBig).w_stride, 224U);
}

TEST(RknnAttr, PictureOutputIsToldAsNchwWithPaddedChannels) {
  const IoEntry e = entry({1, 1, 2048, 288}, DType::kI8);
  const rknn_tensor_attr attr = normal_attr(output(e), kBig);
  EXPECT_EQ(attr.fmt, RKNN_TENSOR_NCHW);
  EXPECT_EQ(dims(attr), (Dims{1, 1, 2048, 288}));
  EXPECT_EQ(attr.w_stride, 0U);
  EXPECT_EQ(attr.size_with_stride, 9437184U);
}

TEST(RknnAttr, OtherRanksKeepTheOrderOfTheModel) {
  const IoEntry e = picture({2, 3, 4});
  const rknn_tensor_attr attr = normal_attr(input(e), kBig);
  EXPECT_EQ(attr.fmt, RKNN_TENSOR_UNDEFINED);
  EXPECT_EQ(dims(attr), (Dims{2, 3, 4}));
  EXPECT_EQ(attr.w_stride, 0U);
  EXPECT_EQ(attr.size_with_stride, attr.size);
}

TEST(RknnAttr, BoolAndLongPicturesStayNchw) {
  for (const DType dtype : {DType::kBool, DType::kI64}) {
    const IoEntry e = picture({1, 3, 4, 16}, dtype);
    EXPECT_EQ(normal_attr(input(e), kBig).fmt, RKNN_TENSOR_NCHW);
    EXPECT_EQ(native_attr(input(e), kBig).fmt, RKNN_TENSOR_NCHW);
  }
}

TEST(RknnAttr, WhatAnAttrTellsOfHalfBytesAndLongsIsTaken) {
  for (const DType dtype : {DType::kI4, DType::kU4, DType::kI64, DType::kU64}) {
    const IoEntry e = picture({1, 3, 4, 5}, dtype);
    for (const IoTensor& io : {input(e), output(e)})
      for (const rknn_tensor_attr& attr :
           {normal_attr(io, kBig), native_attr(io, kBig), native_nhwc_attr(io, kBig)}) {
        EXPECT_EQ(attr.fmt, RKNN_TENSOR_NCHW);
        const auto plan = plan_view(io, {attr.type, attr.fmt, false, attr.w_stride}, kBig);
        ASSERT_TRUE(plan) << plan.error().to_string();
        EXPECT_EQ(plan->view.dtype, dtype);
        EXPECT_EQ(plan->bytes, attr.size);
      }
  }
}

TEST(RknnAttr, RowsOfNchwInputsAreNotPaddedAsTheyAreRead) {
  const IoEntry e = picture({1, 2, 3, 4}, DType::kI64);
  for (const rknn_tensor_attr& attr : {normal_attr(input(e), kBig), native_attr(input(e), kBig),
                                       native_nhwc_attr(input(e), kBig)}) {
    EXPECT_EQ(attr.w_stride, 4U);
    EXPECT_EQ(attr.size_with_stride, 192U);
    EXPECT_EQ(attr.size, 192U);
  }
}

TEST(RknnAttr, HalfIsToldAsAffineWithScaleOne) {
  const IoEntry e = picture({1, 3, 4, 16});
  const rknn_tensor_attr attr = normal_attr(input(e), kBig);
  EXPECT_EQ(attr.type, RKNN_TENSOR_FLOAT16);
  EXPECT_EQ(attr.qnt_type, RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC);
  EXPECT_EQ(attr.zp, 0);
  EXPECT_EQ(attr.scale, 1.0F);
}

TEST(RknnAttr, QuantisedTensorTellsScaleAndZeroPoint) {
  IoEntry e = picture({1, 3, 4, 16}, DType::kI8);
  e.quant_dtype = DType::kI8;
  e.quant = Quant::affine(0.5F, -3);
  const rknn_tensor_attr attr = normal_attr(input(e), kBig);
  EXPECT_EQ(attr.type, RKNN_TENSOR_INT8);
  EXPECT_EQ(attr.qnt_type, RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC);
  EXPECT_EQ(attr.zp, -3);
  EXPECT_EQ(attr.scale, 0.5F);
  e.quant = Quant::dfp(4);
  EXPECT_EQ(normal_attr(input(e), kBig).qnt_type, RKNN_TENSOR_QNT_DFP);
  EXPECT_EQ(normal_attr(input(e), kBig).fl, 4);
}

TEST(RknnAttr, AnIntegerFormOfSeveralScalesIsToldAsHalves) {
  IoEntry e = picture({1, 3, 4, 16}, DType::kI8);
  e.quant_dtype = DType::kI8;
  e.quant = {.kind = QuantKind::kAffine, .scales = {1, 2, 4}, .zero_points = {0, 0, 0}, .axis = 1};
  keep_one_scale(e);
  EXPECT_EQ(normal_attr(input(e), kBig).type, RKNN_TENSOR_FLOAT16);
  EXPECT_EQ(normal_attr(input(e), kBig).scale, 1.0F);
  e.reported_dtype = DType::kF32;  // Asked for.
  keep_one_scale(e);
  EXPECT_EQ(normal_attr(input(e), kBig).type, RKNN_TENSOR_FLOAT32);
}

TEST(RknnAttr, ScalesThatAreAllTheSameAreOneScale) {
  IoEntry e = picture({1, 3, 4, 16}, DType::kI8);
  e.quant_dtype = DType::kI8;
  e.quant = {.kind = QuantKind::kAffine, .scales = {2, 2, 2}, .zero_points = {5, 5, 5}, .axis = 1};
  keep_one_scale(e);
  EXPECT_EQ(normal_attr(input(e), kBig).type, RKNN_TENSOR_INT8);
  EXPECT_EQ(normal_attr(input(e), kBig).scale, 2.0F);
  EXPECT_EQ(normal_attr(input(e), kBig).zp, 5);
  e.quant.zero_points.back() = 4;
  keep_one_scale(e);
  EXPECT_EQ(normal_attr(input(e), kBig).type, RKNN_TENSOR_FLOAT16);
}

TEST(RknnAttr, NativeInputOfFewChannelsIsNhwc) {
  for (const std::int64_t c : {1, 3, 4}) {
    const IoEntry e = picture({1, c, 8, 30}, DType::kI8);
    const rknn_tensor_attr attr = native_attr(input(e), kBig);
    EXPECT_EQ(attr.fmt, RKNN_TENSOR_NHWC);
    EXPECT_EQ(attr.w_stride, 32U);
  }
}

TEST(RknnAttr, NativeInputOfOtherChannelsIsBlocked) {
  struct Case {
    DType dtype;
    Chip chip;
    std::uint32_t c2;
  };
  for (const Case& c : {Case{DType::kI8, kBig, 16}, Case{DType::kI8, kSmall, 8},
                        Case{DType::kF16, kBig, 8}, Case{DType::kF16, kSmall, 4}}) {
    const IoEntry e = picture({1, 20, 8, 30}, c.dtype);
    const rknn_tensor_attr attr = native_attr(input(e), c.chip);
    EXPECT_EQ(attr.fmt, RKNN_TENSOR_NC1HWC2);
    EXPECT_EQ(dims(attr), (Dims{1, (20 + c.c2 - 1) / c.c2, 8, 30, c.c2}));
    EXPECT_EQ(attr.n_elems, (20 + c.c2 - 1) / c.c2 * c.c2 * 8 * 30);
    EXPECT_EQ(attr.size_with_stride, attr.size);
  }
}

TEST(RknnAttr, NativeOutputIsBlockedWhateverItsChannels) {
  const IoEntry e = entry({1, 3, 8, 30}, DType::kI8);
  EXPECT_EQ(native_attr(output(e), kBig).fmt, RKNN_TENSOR_NC1HWC2);
  EXPECT_EQ(native_nhwc_attr(output(e), kBig).fmt, RKNN_TENSOR_NHWC);
  EXPECT_EQ(native_nhwc_attr(output(e), kBig).n_dims, 4U);
}

TEST(RknnAttr, FiveDimensionsHaveNoNativeLayoutOfTheirOwn) {
  const IoEntry e = picture({1, 3, 4, 5, 6});
  EXPECT_EQ(dims(native_attr(input(e), kBig)), (Dims{1, 3, 4, 5, 6}));
  EXPECT_EQ(native_attr(input(e), kBig).fmt, RKNN_TENSOR_UNDEFINED);
}

TEST(RknnAttr, ScalarHasOneDimension) {
  const IoEntry e = entry({}, DType::kF32);
  EXPECT_EQ(dims(normal_attr(output(e), kBig)), (Dims{1}));
}

TEST(RknnAttr, OpenDimensionsAreToldAsZero) {
  const IoEntry e = picture({Shape::kOpen, 3, 4, 16});
  EXPECT_EQ(normal_attr(input(e), kBig).dims[0], 0U);
  EXPECT_EQ(normal_attr(input(e), kBig).size, 0U);
  const auto plan = plan_view(input(e), Form{}, kBig);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code(), Code::kWrongState);
}

TEST(RknnAttr, LongNamesAreCutWithAnEnd) {
  IoEntry e = picture({1, 3, 4, 16});
  e.desc.name.assign(300, 'n');
  EXPECT_EQ(std::string(normal_attr(input(e), kBig).name), std::string(255, 'n'));
}

TEST(RknnAttr, TypesGoThereAndBack) {
  for (std::uint32_t type = 0; type < RKNN_TENSOR_TYPE_MAX; ++type) {
    const auto dtype = dtype_of(static_cast<rknn_tensor_type>(type));
    ASSERT_TRUE(dtype);
    EXPECT_EQ(type_of(*dtype), static_cast<rknn_tensor_type>(type));
  }
  EXPECT_FALSE(dtype_of(RKNN_TENSOR_TYPE_MAX));
  EXPECT_EQ(type_of(DType::kF64), RKNN_TENSOR_FLOAT32);
  EXPECT_EQ(type_of(DType::kU64), RKNN_TENSOR_INT64);
}

TEST(RknnAttr, MeanAndStdBelongToPixelsAndReals) {
  IoEntry e = picture({1, 3, 4, 16}, DType::kI8);
  e.quant_dtype = DType::kI8;
  e.quant = Quant::affine(0.5F, 1);
  e.mean = {1, 2, 3};
  e.std = {4, 5, 6};
  const auto u8 = plan_view(input(e), {RKNN_TENSOR_UINT8, RKNN_TENSOR_NHWC, false, 0}, kBig);
  EXPECT_EQ(u8.value().convert.mean, e.mean);
  EXPECT_EQ(u8.value().view.quant, Quant::none());
  const auto i8 = plan_view(input(e), {RKNN_TENSOR_INT8, RKNN_TENSOR_NHWC, false, 0}, kBig);
  EXPECT_TRUE(i8.value().convert.mean.empty());
  EXPECT_EQ(i8.value().view.quant, e.quant);
  const auto any = plan_view(input(e), {RKNN_TENSOR_UINT8, RKNN_TENSOR_UNDEFINED, false, 0}, kBig);
  EXPECT_TRUE(any.value().convert.mean.empty());
  const auto raw = plan_view(input(e), native_form(input(e), kBig), kBig);
  EXPECT_TRUE(raw.value().convert.mean.empty());
  EXPECT_EQ(raw.value().view.quant, e.quant);
}

TEST(RknnAttr, LongsTakeOnlyLongs) {
  const IoEntry e = entry({4}, DType::kI64);
  const auto plan =
      plan_view(input(e), {RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED, false, 0}, kBig);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code(), Code::kTypeMismatch);
}

TEST(RknnAttr, StrideBelowTheWidthIsRefused) {
  const IoEntry e = picture({1, 3, 4, 16});
  EXPECT_FALSE(plan_view(input(e), {RKNN_TENSOR_UINT8, RKNN_TENSOR_NHWC, false, 15}, kBig));
  EXPECT_EQ(
      plan_view(input(e), {RKNN_TENSOR_UINT8, RKNN_TENSOR_NHWC, false, 20}, kBig).value().bytes,
      4U * 20 * 3);
}

}  // namespace
}  // namespace corelane::rknn
