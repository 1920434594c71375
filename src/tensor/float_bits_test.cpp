#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "corelane/tensor/convert.h"

namespace corelane {
namespace {

TEST(F16, EveryValueRoundTrips) {
  for (std::uint32_t h = 0; h <= 0xFFFF; ++h) {
    const auto half = static_cast<std::uint16_t>(h);
    const float f = f16_to_f32(half);
    const bool nan = (h & 0x7FFF) > 0x7C00;
    ASSERT_EQ(std::isnan(f), nan) << h;
    ASSERT_EQ(f32_to_f16(f), nan ? half | 0x200 : half) << h;
  }
}

TEST(F16, EveryValueIsWhatTheFormatSays) {
  for (std::uint32_t h = 0; h < 0x7C00; ++h) {
    const int exponent = static_cast<int>(h >> 10);
    const double mantissa = h & 0x3FF;
    const double expected =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    ASSERT_EQ(f16_to_f32(static_cast<std::uint16_t>(h)), expected) << h;
    ASSERT_EQ(f16_to_f32(static_cast<std::uint16_t>(h | 0x8000)), -expected) << h;
  }
}

TEST(F16, RoundsToNearestEvenBetweenAllNeighbours) {
  for (std::uint32_t h = 0; h < 0x7C00; ++h) {
    const double low = f16_to_f32(static_cast<std::uint16_t>(h));
    const double high = h == 0x7BFF ? 65536.0 : f16_to_f32(static_cast<std::uint16_t>(h + 1));
    const auto middle = static_cast<float>((low + high) / 2);  // Exact in f32.
    ASSERT_EQ(f32_to_f16(middle), h % 2 == 0 ? h : h + 1);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0F)), h);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9F)), h + 1);
  }
}

TEST(F16, OverflowUnderflowAndNan) {
  EXPECT_EQ(f32_to_f16(65519.996F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::infinity()), 0xFC00);
  EXPECT_EQ(f32_to_f16(0x1p-25F), 0);
  EXPECT_EQ(f32_to_f16(-0x1.8p-25F), 0x8001);
  EXPECT_EQ(f32_to_f16(std::bit_cast<float>(0x7F800001U)), 0x7E00);
  EXPECT_EQ(f32_to_f16(std::bit_cast<float>(0xFFFFFFFFU)), 0xFFFF);
}

TEST(BF16, EveryValueRoundTrips) {
  for (std::uint32_t b = 0; b <= 0xFFFF; ++b) {
    const auto bits = static_cast<std::uint16_t>(b);
    const bool nan = (b & 0x7FFF) > 0x7F80;
    ASSERT_EQ(f32_to_bf16(bf16_to_f32(bits)), nan ? bits | 0x40 : bits) << b;
  }
}

TEST(BF16, RoundsToNearestEven) {
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808000U)), 0x3F80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F818000U)), 0x3F82);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808001U)), 0x3F81);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7F7FFFFFU)), 0x7F80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7F800001U)), 0x7FC0);
}

}  // namespace
}  // namespace corelane
