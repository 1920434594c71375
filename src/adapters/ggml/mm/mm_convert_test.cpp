#include "adapters/ggml/mm/mm_convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace corelane::ggml {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Past the eight that go at once, so that both ways are looked at.
TEST(MmConvert, EveryHalfSurvivesTheWayThereAndBack) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  std::vector<float> floats(all.size());
  halves_to_floats(all.data(), all.size(), floats.data());
  std::vector<std::uint16_t> back(all.size());
  floats_to_halves(floats.data(), floats.size(), back.data());
  for (std::size_t i = 0; i < all.size(); ++i) {
    float one = 0;
    halves_to_floats(&all[i], 1, &one);
    if (std::isnan(floats[i])) {
      EXPECT_TRUE(std::isnan(one));
      continue;
    }
    ASSERT_EQ(one, floats[i]) << i;
    std::uint16_t half = 0;
    floats_to_halves(&floats[i], 1, &half);
    ASSERT_EQ(half, i);
    ASSERT_EQ(back[i], i);
  }
}

TEST(MmConvert, HalvesRoundToNearestEvenOneByOneAsByEight) {
  std::mt19937 random(7);
  std::vector<float> floats = {65504,      65519,         65520,         -65520,
                               1e-8F,      2.9802322e-8F, 5.9604645e-8F, 6.1e-5F,
                               1.0004883F, 1.0014648F,    kInfinity,     -0.0F};
  std::uniform_real_distribution<float> exponent(-30, 18);
  for (int i = 0; i < 100000; ++i) floats.push_back(std::exp2(exponent(random)));
  floats.resize(floats.size() / 8 * 8);
  std::vector<std::uint16_t> eight(floats.size());
  floats_to_halves(floats.data(), floats.size(), eight.data());
  for (std::size_t i = 0; i < floats.size(); ++i) {
    std::uint16_t one = 0;
    floats_to_halves(&floats[i], 1, &one);
    ASSERT_EQ(one, eight[i]) << floats[i];
  }
  EXPECT_EQ(eight[0], 0x7bff);
  EXPECT_EQ(eight[1], 0x7bff);
  EXPECT_EQ(eight[2], 0x7c00) << "beyond the largest half: infinity";
}

TEST(MmConvert, RotationKeepsProductsAndSpreadsOneLargeElement) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const std::size_t count : {1, 2, 31, 32, 96, 192, 576, 960, 1536, 1600}) {
    std::vector<float> a(count), b(count);
    for (auto& x : a) x = normal(random);
    for (auto& x : b) x = normal(random);
    for (const std::size_t at : {std::size_t{0}, count / 2, count - 1}) {
      std::vector<float> x = a;
      std::vector<float> y = b;
      x[at] = 100;
      double before = 0;
      for (std::size_t i = 0; i < count; ++i) before += static_cast<double>(x[i]) * y[i];
      rotate(x.data(), count);
      rotate(y.data(), count);
      double after = 0;
      float largest = 0;
      for (std::size_t i = 0; i < count; ++i) {
        after += static_cast<double>(x[i]) * y[i];
        largest = std::max(largest, std::fabs(x[i]));
      }
      EXPECT_NEAR(after, before, 1e-3) << count << " " << at;
      if (count >= 576) EXPECT_LT(largest, 15) << count << " " << at;
    }
  }
}

TEST(MmConvert, RotationIsTheHadamardMatrixOfFixedSignsForEachLengthOfABlock) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (std::size_t block = 1; block <= 512; block *= 2) {
    std::vector<float> row(block == 512 ? block * 3 : block);
    for (auto& x : row) x = normal(random);
    const std::vector<float> before = row;
    rotate(row.data(), row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < block; ++j)
        sum += ((__builtin_popcountll(i % block & j) + __builtin_popcountll(j & (j >> 1) & 0x55)) %
                            2 ==
                        0
                    ? 1.0
                    : -1.0) *
               static_cast<double>(before[i / block * block + j]);
      ASSERT_NEAR(row[i], sum / std::sqrt(static_cast<double>(block)), 1e-4) << block << " " << i;
    }
  }
}

TEST(MmConvert, RotationSpreadsWhatAllElementsHaveInCommon) {
  for (const std::size_t block : {2, 8, 32, 256, 512, 576, 960, 1504}) {
    std::vector<float> same(block, 1.0F);
    std::vector<float> alternating(block);
    for (std::size_t i = 0; i < block; ++i) alternating[i] = i % 2 == 0 ? 1.0F : -1.0F;
    for (auto* row : {&same, &alternating}) {
      rotate(row->data(), block);
      for (const float x : *row)
        EXPECT_LT(std::fabs(x), block > 512 && block % 512 != 0 ? 4.0F : 1.5F) << block;
    }
  }
}

TEST(MmConvert, Int8IsWithinHalfAStep) {
  std::vector<float> row(1000);
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (auto& x : row) x = normal(random);
  std::vector<std::int8_t> out(row.size());
  const float scale = floats_to_int8(row.data(), row.size(), out.data());
  for (std::size_t i = 0; i < row.size(); ++i)
    ASSERT_LE(std::fabs(static_cast<float>(out[i]) * scale - row[i]), scale * 0.5001F);
}

/// The step of the element, as the NPU reads it.
int step_of(const std::vector<std::uint8_t>& packed, std::size_t at) {
  const int half = at % 2 == 0 ? packed[at / 2] & 15 : packed[at / 2] >> 4;
  return half < 8 ? half : half - 16;
}

TEST(MmConvert, Int4IsWithinHalfAStepOrAtAnEnd) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const std::size_t count : {2, 14, 16, 18, 32, 256, 258, 576, 1000}) {
    std::vector<float> row(count);
    for (auto& x : row) x = normal(random);
    std::vector<std::uint8_t> out(count / 2 + 1, 0xee);
    const float scale = floats_to_int4(row.data(), count, out.data());
    for (std::size_t i = 0; i < count; ++i) {
      const int step = step_of(out, i);
      ASSERT_LE(std::abs(step), 7) << count << " " << i;
      if (std::fabs(row[i]) > 7.5F * scale)
        ASSERT_EQ(step, row[i] < 0 ? -7 : 7) << count << " " << i;
      else
        ASSERT_LE(std::fabs(static_cast<float>(step) * scale - row[i]), scale * 0.5001F);
    }
    EXPECT_EQ(out[count / 2], 0xee) << "beyond the row";
  }
}

/// The error is relative to a row's square; 15 even steps leave at least 0.0115 of a normal
/// distribution.
TEST(MmConvert, Int4LeavesLittleMoreThanItMustOfRowsThatAreSpreadNormally) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const std::size_t count : {512, 4096, 10240}) {
    std::vector<float> row(count);
    for (auto& x : row) x = normal(random);
    std::vector<std::uint8_t> out(count / 2);
    const float scale = floats_to_int4(row.data(), count, out.data());
    double left = 0;
    double all = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double difference = static_cast<double>(row[i]) - step_of(out, i) * scale;
      left += difference * difference;
      all += static_cast<double>(row[i]) * row[i];
    }
    EXPECT_LT(left / all, 0.0135) << count;
  }
}

TEST(MmConvert, Int4KeepsRowsOfFewValuesAsTheyAre) {
  std::vector<float> row(32);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i % 15) - 7;
  std::vector<std::uint8_t> out(row.size() / 2);
  EXPECT_FLOAT_EQ(floats_to_int4(row.data(), row.size(), out.data()), 1);
  for (std::size_t i = 0; i < row.size(); ++i)
    EXPECT_EQ(static_cast<float>(step_of(out, i)), row[i]);
}

TEST(MmConvert, SumsOfBothWidthsAreScaledAndAdded) {
  std::vector<float> scales(37), out(37, 1.0F), narrow_out(37, 1.0F);
  std::vector<std::int32_t> sums(37);
  std::vector<std::int16_t> narrow(37);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] = narrow[i] = static_cast<std::int16_t>(static_cast<int>(i) * 1770 - 32000);
    scales[i] = 0.5F + static_cast<float>(i);
  }
  for (const bool add : {true, false}) {
    scale_sums(sums.data(), sums.size(), 0.25F, scales.data(), add, out.data());
    scale_sums(narrow.data(), narrow.size(), 0.25F, scales.data(), add, narrow_out.data());
    EXPECT_EQ(out, narrow_out);
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_FLOAT_EQ(out[i], static_cast<float>(sums[i]) * 0.25F * scales[i] + (add ? 1 : 0));
  }
}

TEST(MmConvert, RowsBeyondTheRangeOfHalvesAreScaledByAPowerOfTwo) {
  std::vector<float> row(37, 0.0F);
  EXPECT_EQ(scale_for_halves(row.data(), row.size()), 1);
  for (const float held : {0x1p-10F, 0.5F, -65504.0F, kInfinity, std::nanf("")}) {
    row[36] = held;
    EXPECT_EQ(scale_for_halves(row.data(), row.size()), 1) << held;
  }
  for (const float beyond : {1e-30F, 9e-4F, -65505.0F, 1e5F, -3e38F}) {
    row[36] = beyond;
    const float scale = scale_for_halves(row.data(), row.size());
    int exponent = 0;
    EXPECT_EQ(std::frexp(scale, &exponent), 0.5F) << beyond;
    EXPECT_GE(std::fabs(beyond) / scale, beyond == 1e-30F ? 1.0F : 2048.0F) << beyond;
    EXPECT_LT(std::fabs(beyond) / scale, 4096.0F) << beyond;
  }
}

TEST(MmConvert, RowsOfZerosAndRowsThatAreNotFiniteGiveProductsThatAreTheSame) {
  std::vector<float> row(32, 0.0F);
  std::vector<std::int8_t> out(row.size(), 1);
  EXPECT_EQ(floats_to_int8(row.data(), row.size(), out.data()), 0);
  EXPECT_EQ(out[5], 0);
  std::vector<std::uint8_t> packed(row.size() / 2, 1);
  EXPECT_EQ(floats_to_int4(row.data(), row.size(), packed.data()), 0);
  EXPECT_EQ(packed[5], 0);
  for (const std::size_t length : {3, 16, 21, 32})
    for (const std::size_t at : {std::size_t{0}, length / 2, length - 1})
      for (const float value : {kInfinity, -kInfinity, std::nanf("")}) {
        std::vector<float> odd(length, 0.5F);
        odd[at] = value;
        EXPECT_TRUE(std::isnan(floats_to_int8(odd.data(), length, out.data()))) << length;
        if (length % 2 == 0)
          EXPECT_TRUE(std::isnan(floats_to_int4(odd.data(), length, packed.data()))) << length;
      }
}

TEST(MmConvert, RowsTooSmallForTheInverseOfAScaleBecomeZeros) {
  for (const float small : {1e-45F, -1e-40F, 3e-38F, -3e-37F}) {
    const std::vector<float> row(32, small);
    std::vector<std::int8_t> out(row.size(), 1);
    EXPECT_EQ(floats_to_int8(row.data(), row.size(), out.data()), 0) << small;
    EXPECT_EQ(out[5], 0) << small;
    std::vector<std::uint8_t> packed(row.size() / 2, 1);
    EXPECT_EQ(floats_to_int4(row.data(), row.size(), packed.data()), 0) << small;
    EXPECT_EQ(packed[5], 0) << small;
  }
}

}  // namespace
}  // namespace corelane::ggml
