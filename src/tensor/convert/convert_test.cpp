#include "corelane/tensor/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

namespace corelane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class T>
constexpr DType kTypeOf = DType::kUndefined;
template <>
constexpr DType kTypeOf<float> = DType::kF32;
template <>
constexpr DType kTypeOf<double> = DType::kF64;
template <>
constexpr DType kTypeOf<std::int8_t> = DType::kI8;
template <>
constexpr DType kTypeOf<std::uint8_t> = DType::kU8;
template <>
constexpr DType kTypeOf<std::int32_t> = DType::kI32;
template <>
constexpr DType kTypeOf<std::uint32_t> = DType::kU32;
template <>
constexpr DType kTypeOf<std::int64_t> = DType::kI64;
template <>
constexpr DType kTypeOf<std::uint64_t> = DType::kU64;

template <class T>
TensorView view(const std::vector<T>& v, Shape shape, Quant quant = {}, Layout layout = {}) {
  return {v.data(), v.size() * sizeof(T), kTypeOf<T>, std::move(shape), layout, std::move(quant)};
}
template <class T>
MutableTensorView mut(std::vector<T>& v, Shape shape, Quant quant = {}, Layout layout = {}) {
  return {v.data(), v.size() * sizeof(T), kTypeOf<T>, std::move(shape), layout, std::move(quant)};
}

/// A vector converted in shape order.
template <class To, class From>
std::vector<To> converted(const std::vector<From>& from, Quant src = {}, Quant dst = {}) {
  const Shape shape{static_cast<std::int64_t>(from.size())};
  std::vector<To> to(from.size());
  const Status s = convert(view(from, shape, std::move(src)), mut(to, shape, std::move(dst)));
  EXPECT_TRUE(s.ok()) << s.to_string();
  return to;
}

TEST(Convert, QuantizeRoundsHalfToEvenAndSaturates) {
  EXPECT_THAT((converted<std::int8_t>(
                  std::vector<float>{0.25F, 0.75F, -0.25F, -0.75F, 100, -100, kInf, -kInf, kNan},
                  {}, Quant::affine(0.5F, 3))),
              ElementsAre(3, 5, 3, 1, 127, -128, 127, -128, 3));
  EXPECT_THAT((converted<std::uint8_t>(std::vector<float>{0.5F, 1.5F, 2.5F, -1, 300, kNan})),
              ElementsAre(0, 2, 2, 0, 255, 0));
}

TEST(Convert, AZeroPointOutsideTheTypeSaturates) {
  EXPECT_THAT(
      (converted<std::int8_t>(std::vector<float>{kNan, 0, -500}, {}, Quant::affine(1, 300))),
      ElementsAre(127, 127, -128));
}

TEST(Convert, DequantizeSubtractsTheZeroPointFirst) {
  EXPECT_THAT((converted<float>(std::vector<std::int8_t>{-128, 0, 127}, Quant::affine(0.1F, -128))),
              ElementsAre(0.0F, 128 * 0.1F, 255 * 0.1F));
  EXPECT_THAT((converted<float>(std::vector<std::int32_t>{16777217}, Quant::affine(0.5F, 0))),
              ElementsAre(static_cast<float>(16777217) * 0.5F));
}

TEST(Convert, DynamicFixedPointIsAPowerOfTwo) {
  EXPECT_THAT((converted<float>(std::vector<std::int8_t>{1, -3}, Quant::dfp(7))),
              ElementsAre(0x1p-7F, -3 * 0x1p-7F));
  EXPECT_THAT((converted<std::int8_t>(std::vector<float>{1, -3.5F}, {}, Quant::dfp(2))),
              ElementsAre(4, -14));
  // Scales that no normal f32 holds.
  EXPECT_THAT((converted<float>(std::vector<std::int8_t>{1, -1}, Quant::dfp(-128))),
              ElementsAre(kInf, -kInf));
  EXPECT_THAT((converted<float>(std::vector<std::int8_t>{3}, Quant::dfp(127))),
              ElementsAre(3 * 0x1p-127F));
}

TEST(Convert, WideIntegersConvertExactlyAndSaturate) {
  const std::vector<std::int64_t> wide{INT64_MIN, -1, 0, 9007199254740993, INT64_MAX};
  EXPECT_THAT((converted<std::uint64_t>(wide)),
              ElementsAre(0U, 0U, 0U, 9007199254740993U, 9223372036854775807U));
  EXPECT_THAT((converted<std::int32_t>(wide)), ElementsAre(INT32_MIN, -1, 0, INT32_MAX, INT32_MAX));
  EXPECT_THAT((converted<std::int64_t>(std::vector<std::uint64_t>{UINT64_MAX, 1})),
              ElementsAre(INT64_MAX, 1));
  EXPECT_THAT((converted<std::uint32_t>(std::vector<std::int32_t>{-5, 7})), ElementsAre(0U, 7U));
}

TEST(Convert, RealsBecomeWideIntegersWithoutOverflow) {
  EXPECT_THAT((converted<std::int64_t>(std::vector<float>{kInf, -kInf, kNan, 2.5F, 0x1p63F})),
              ElementsAre(INT64_MAX, INT64_MIN, 0, 2, INT64_MAX));
  EXPECT_THAT((converted<std::uint64_t>(std::vector<double>{-1, 0x1p64, 0x1p63})),
              ElementsAre(0U, UINT64_MAX, 9223372036854775808U));
  EXPECT_THAT(
      (converted<std::uint64_t>(std::vector<double>{0x1p65, 0x1p63}, {}, Quant::affine(1, -5))),
      ElementsAre(UINT64_MAX, 9223372036854775803U));
}

TEST(Convert, WideSourcesRoundOnceToNarrowFloats) {
  // Rounding these first to f64 or f32 would land on a tie and then go the wrong way.
  std::vector<std::uint16_t> half(1);
  const std::vector<double> just_above_tie{1.0 + 0x1p-11 + 0x1p-40};
  ASSERT_TRUE(convert(view(just_above_tie, {1}), {half.data(), 2, DType::kF16, {1}, {}, {}}).ok());
  EXPECT_EQ(half[0], 0x3C01);
  const std::vector<std::int64_t> above{(std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1};
  EXPECT_THAT((converted<float>(above)), ElementsAre(0x1p60F + 0x1p37F));
  ASSERT_TRUE(
      convert(view(std::vector<double>{1e300}, {1}), {half.data(), 2, DType::kF16, {1}, {}, {}})
          .ok());
  EXPECT_EQ(half[0], 0x7C00);
}

TEST(Convert, BoolIsNotZero) {
  const std::vector<float> x{0, -0.0F, 0.25F, kNan};
  std::vector<std::uint8_t> b(4);
  ASSERT_TRUE(convert(view(x, {4}), {b.data(), 4, DType::kBool, {4}, {}, {}}).ok());
  EXPECT_THAT(b, ElementsAre(0, 0, 1, 1));
  const std::vector<std::uint8_t> odd{0, 1, 7};
  std::vector<float> back(3);
  ASSERT_TRUE(convert({odd.data(), 3, DType::kBool, {3}, {}, {}}, mut(back, {3})).ok());
  EXPECT_THAT(back, ElementsAre(0, 1, 1));
}

TEST(Convert, NibblesUnpackAndPackEvenFirst) {
  const std::vector<std::uint8_t> packed{0x81, 0xF7, 0xA3};
  std::vector<std::int8_t> q(5);
  ASSERT_TRUE(convert({packed.data(), 3, DType::kI4, {5}, {}, {}}, mut(q, {5})).ok());
  EXPECT_THAT(q, ElementsAre(1, -8, 7, -1, 3));
  std::vector<std::uint8_t> again(3, 0xFF);
  ASSERT_TRUE(convert(view(q, {5}), {again.data(), 3, DType::kI4, {5}, {}, {}}).ok());
  EXPECT_THAT(again, ElementsAre(0x81, 0xF7, 0x03));
  ASSERT_TRUE(convert(view(std::vector<float>{-1, 99, 3.5F}, {3}),
                      {again.data(), 2, DType::kU4, {3}, {}, {}})
                  .ok());
  EXPECT_THAT(again, ElementsAre(0xF0, 0x04, 0x03));
  ASSERT_TRUE(convert({packed.data(), 3, DType::kI4, {5}, {}, {}},
                      {again.data(), 3, DType::kI4, {5}, {}, {}})
                  .ok());
  EXPECT_THAT(again, ElementsAre(0x81, 0xF7, 0x03));
}

TEST(Convert, LayoutsPutElementsWhereTheHeaderSays) {
  std::vector<std::int32_t> plain(2 * 3 * 2 * 2);
  std::iota(plain.begin(), plain.end(), 1);
  const Shape s{2, 3, 2, 2};
  std::vector<std::int32_t> nhwc(2 * 2 * 3 * 3, 99);
  ASSERT_TRUE(convert(view(plain, s), mut(nhwc, s, {}, {LayoutKind::kNHWC, 0, 3})).ok());
  EXPECT_THAT(std::vector(nhwc.begin(), nhwc.begin() + 18),
              ElementsAre(1, 5, 9, 2, 6, 10, 0, 0, 0, 3, 7, 11, 4, 8, 12, 0, 0, 0));
  std::vector<std::int32_t> blocked(2 * 2 * 2 * 2 * 2, 99);
  ASSERT_TRUE(convert(view(nhwc, s, {}, {LayoutKind::kNHWC, 0, 3}),
                      mut(blocked, s, {}, {LayoutKind::kNC1HWC2, 2, 0}))
                  .ok());
  EXPECT_THAT(std::vector(blocked.begin(), blocked.begin() + 16),
              ElementsAre(1, 5, 2, 6, 3, 7, 4, 8, 9, 0, 10, 0, 11, 0, 12, 0));
  std::vector<std::int32_t> back(plain.size());
  ASSERT_TRUE(convert(view(blocked, s, {}, {LayoutKind::kNC1HWC2, 2, 0}), mut(back, s)).ok());
  EXPECT_EQ(back, plain);
}

TEST(Convert, PaddingIsTheZeroPointOfTheNearestChannel) {
  const Shape s{1, 3, 1, 1};
  Quant q;
  q.kind = QuantKind::kAffine;
  q.scales = {1, 1, 1};
  q.zero_points = {1, 2, 3};
  q.axis = 1;
  std::vector<std::int8_t> out(2 * 1 * 2 * 2, 99);
  ASSERT_TRUE(
      convert(view(std::vector<float>{10, 20, 30}, s), mut(out, s, q, {LayoutKind::kNC1HWC2, 2, 2}))
          .ok());
  EXPECT_THAT(out, ElementsAre(11, 22, 1, 2, 33, 3, 3, 3));
}

TEST(Convert, PerChannelQuantizationFollowsItsAxisInAnyRank) {
  Quant q;
  q.kind = QuantKind::kAffine;
  q.scales = {1, 10};
  q.zero_points = {0, 5};
  q.axis = 1;
  std::vector<float> out(6);
  ASSERT_TRUE(
      convert(view(std::vector<std::int8_t>{1, 2, 6, 7, 8, 9}, {1, 2, 3}, q), mut(out, {1, 2, 3}))
          .ok());
  EXPECT_THAT(out, ElementsAre(1, 2, 6, 20, 30, 40));
  q.axis = 2;
  ASSERT_TRUE(
      convert(view(std::vector<std::int8_t>{1, 6, 2, 7, 3, 8}, {1, 3, 2}, q), mut(out, {1, 3, 2}))
          .ok());
  EXPECT_THAT(out, ElementsAre(1, 10, 2, 20, 3, 30));
}

TEST(Convert, NormalisesRealsPerChannel) {
  const Shape s{1, 2, 1, 2};
  ConvertOptions options;
  options.mean = {10, 20};
  options.std = {2};
  std::vector<float> out(4);
  ASSERT_TRUE(
      convert(view(std::vector<std::uint8_t>{10, 12, 20, 26}, s), mut(out, s), options).ok());
  EXPECT_THAT(out, ElementsAre(0, 1, 0, 3));
  options.mean = {};
  options.std = {2, 4};
  ASSERT_TRUE(convert(view(std::vector<float>{2, 4, 4, 8}, s), mut(out, s), options).ok());
  EXPECT_THAT(out, ElementsAre(1, 2, 1, 2));
}

TEST(Convert, EqualTypesMoveTheBits) {
  const std::uint32_t signalling = 0x7F800001;
  const std::vector<float> x{std::bit_cast<float>(signalling), -0.0F};
  std::vector<float> y(2);
  ASSERT_TRUE(convert(view(x, {2}), mut(y, {2})).ok());
  EXPECT_EQ(std::bit_cast<std::uint32_t>(y[0]), signalling);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(y[1]), 0x80000000U);
}

TEST(Convert, OverlapIsRefusedUnlessNothingChanges) {
  std::vector<float> x{1, 2, 3, 4};
  EXPECT_TRUE(convert(view(x, {4}), mut(x, {4})).ok());
  EXPECT_THAT(x, ElementsAre(1, 2, 3, 4));
  const Status s = convert({x.data(), 12, DType::kF32, {3}, {}, {}},
                           {x.data() + 1, 12, DType::kF32, {3}, {}, {}});
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_THAT(s.message(), HasSubstr("overlap"));
  EXPECT_EQ(convert(view(x, {4}), {x.data(), 8, DType::kF16, {4}, {}, {}}).code(),
            Code::kInvalidArgument);
  EXPECT_TRUE(
      convert({x.data(), 8, DType::kF32, {2}, {}, {}}, {x.data() + 2, 8, DType::kF32, {2}, {}, {}})
          .ok());
}

TEST(Convert, EmptyTensorsNeedNoMemory) {
  EXPECT_TRUE(
      convert({nullptr, 0, DType::kF32, {0, 3}, {}, {}}, {nullptr, 0, DType::kI8, {0, 3}, {}, {}})
          .ok());
  // No pixel, but rows of padding.
  std::vector<std::int8_t> padding(2 * 2 * 3, 99);
  EXPECT_TRUE(convert({nullptr, 0, DType::kF32, {1, 3, 2, 0}, {}, {}},
                      mut(padding, {1, 3, 2, 0}, Quant::affine(1, 7), {LayoutKind::kNHWC, 0, 2}))
                  .ok());
  EXPECT_THAT(padding, ::testing::Each(7));
}

TEST(Convert, ErrorsNameWhatWasGivenAndWhatIsAllowed) {
  std::vector<float> x(12);
  std::vector<std::int8_t> y(12);
  const Shape s{1, 3, 2, 2};
  EXPECT_EQ(convert(view(x, {1, 3, 4}), mut(y, s)).code(), Code::kShapeMismatch);
  Status r = convert(view(x, s), {y.data(), 11, DType::kI8, s, {}, {}});
  EXPECT_EQ(r.code(), Code::kOutOfRange);
  EXPECT_THAT(r.message(), HasSubstr("11 bytes"));
  EXPECT_THAT(r.message(), HasSubstr("needs 12"));
  EXPECT_EQ(convert(view(x, s), {nullptr, 12, DType::kI8, s, {}, {}}).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(convert({x.data(), 48, DType::kString, s, {}, {}}, mut(y, s)).code(),
            Code::kUnsupported);
  EXPECT_EQ(convert(view(x, {-1, 3, 2, 2}), mut(y, {-1, 3, 2, 2})).code(), Code::kInvalidArgument);
  EXPECT_EQ(convert(view(x, s), mut(y, s, Quant::affine(0, 0))).code(), Code::kInvalidArgument);
  ConvertOptions options;
  options.mean = {1, 2};
  r = convert(view(x, s), mut(y, s), options);
  EXPECT_EQ(r.code(), Code::kInvalidArgument);
  EXPECT_THAT(r.message(), HasSubstr("mean has 2 values; allowed are 1 or 3"));
  options.mean = {1};
  EXPECT_EQ(convert(view(x, {12}), mut(y, {12}), options).code(), Code::kInvalidArgument);
  options.mean = {};
  options.std = {0};
  EXPECT_EQ(convert(view(x, s), mut(y, s), options).code(), Code::kInvalidArgument);
  options.std = {kNan};
  EXPECT_EQ(convert(view(x, s), mut(y, s), options).code(), Code::kInvalidArgument);
}

TEST(Convert, OpaqueTypesAreMovedAndNeverRead) {
  std::vector<std::uint8_t> x(12, 0xFF);
  std::vector<std::uint8_t> y(12, 0xAA);
  std::vector<float> f(12);
  const Shape s{1, 3, 1, 3};
  const auto from = [&](DType t, Layout l = {}) { return TensorView{x.data(), 12, t, s, l, {}}; };
  const auto to = [&](DType t, Layout l = {}) {
    return MutableTensorView{y.data(), 12, t, s, l, {}};
  };
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    if (!is_opaque(t)) continue;
    EXPECT_TRUE(convert(from(t), to(t)).ok()) << dtype_name(t);
    EXPECT_EQ(convert(from(t), mut(f, s)).code(), Code::kUnsupported) << dtype_name(t);
    EXPECT_EQ(convert(view(f, s), to(t)).code(), Code::kUnsupported) << dtype_name(t);
    EXPECT_EQ(convert(from(t), to(DType::kU8)).code(), Code::kUnsupported) << dtype_name(t);
    ConvertOptions options;
    options.mean = {1};
    const Status normalised = convert(from(t), to(t), options);
    EXPECT_EQ(normalised.code(), Code::kUnsupported) << dtype_name(t);
    EXPECT_THAT(normalised.message(), HasSubstr(dtype_name(t)));
  }
  // Nine elements of two bits: the last byte has one.
  ASSERT_TRUE(convert(from(DType::kU2), to(DType::kU2)).ok());
  EXPECT_EQ(y[2], 0x03);
  // Layouts that differ in what plain tensors do not have.
  ASSERT_TRUE(convert(from(DType::kF4E2M1), to(DType::kF4E2M1, {LayoutKind::kPlain, 5, 0})).ok());
  EXPECT_EQ(y[4], 0x0F);
  x = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  x.resize(12);
  ASSERT_TRUE(convert(from(DType::kF8E5M2), to(DType::kF8E5M2, {LayoutKind::kNHWC, 0, 0})).ok());
  EXPECT_THAT(std::vector(y.begin(), y.begin() + 3), ElementsAre(1, 4, 7));
}

TEST(Convert, QuantizationOfFloatsIsIgnored) {
  std::vector<float> x{1, 2};
  std::vector<float> y(2);
  EXPECT_TRUE(convert(view(x, {2}, Quant::affine(2, 0)), mut(y, {2}, Quant::affine(3, 1))).ok());
  EXPECT_EQ(x, y);
}

}  // namespace
}  // namespace corelane
