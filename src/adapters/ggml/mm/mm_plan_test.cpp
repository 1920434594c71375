#include "adapters/ggml/mm/mm_plan.h"

#include <gtest/gtest.h>

#include <string>

namespace corelane::ggml {
namespace {

/// The tiles cover each element of B once, in order, within the library's limits. Empty when they
/// do.
std::string faults_of(const MmPlan& plan, std::int64_t k, std::int64_t n) {
  const MmElement b = element_of_b(plan.type);
  const std::int64_t n_multiple = b == MmElement::kF16 ? 16 : b == MmElement::kInt8 ? 32 : 64;
  const std::int64_t max_k = plan.type == MmType::kW4A4 ? 32767 / (7 * 7) : 10240;
  std::int64_t next_n = 0;
  std::int64_t next_k = 0;
  for (const MmTile& tile : plan.tiles) {
    if (tile.n0 != next_n || tile.k0 != next_k) return "a gap";
    if (tile.k < 1 || tile.n < 1) return "an empty tile";
    if (tile.padded_k % 32 != 0 || tile.padded_k > max_k) return "a K that the library refuses";
    if (tile.padded_n % n_multiple != 0) return "an N that the library refuses";
    if (tile.padded_k < tile.k || tile.padded_k - tile.k >= 32) return "wrong padding of K";
    if (tile.padded_n < tile.n || tile.padded_n - tile.n >= n_multiple) return "wrong padding of N";
    next_k += tile.k;
    if (next_k < k) continue;
    next_k = 0;
    next_n += tile.n;
  }
  return next_n == n && next_k == 0 ? "" : "an end that is not the matrix's";
}

TEST(MmPlan, EverySizeTo70000IsCoveredWithinTheLimits) {
  for (const MmType type : {MmType::kF16, MmType::kInt8, MmType::kW4A8, MmType::kW4A4})
    for (std::int64_t size = 1; size <= 70000; ++size) {
      const std::int64_t other = 1 + size * 7919 % 70000;
      ASSERT_EQ(faults_of(plan_product(type, size, other), size, other), "")
          << size << " " << other;
      ASSERT_EQ(faults_of(plan_product(type, other, size, 3), other, size), "")
          << other << " " << size;
    }
}

TEST(MmPlan, AlignedWeightsLieInPlace) {
  EXPECT_TRUE(plan_product(MmType::kF16, 4096, 4096).in_place);
  EXPECT_TRUE(plan_product(MmType::kF16, 576, 49152).in_place);
  EXPECT_FALSE(plan_product(MmType::kF16, 4100, 4096).in_place);
  EXPECT_FALSE(plan_product(MmType::kF16, 4096, 4097).in_place);
  EXPECT_FALSE(plan_product(MmType::kF16, 14336, 4096).in_place) << "two parts along K";
}

TEST(MmPlan, Int4TakesHalfTheBytesOfInt8) {
  EXPECT_EQ(plan_product(MmType::kInt8, 512, 4096).tiles[0].bytes(MmType::kInt8), 512U * 4096);
  EXPECT_EQ(plan_product(MmType::kW4A8, 512, 4096).tiles[0].bytes(MmType::kW4A8), 256U * 4096);
}

TEST(MmPlan, SumsOf16BitsHaveShortParts) {
  EXPECT_EQ(plan_product(MmType::kW4A4, 640, 64).tiles.size(), 1U);
  EXPECT_EQ(plan_product(MmType::kW4A4, 641, 64).tiles.size(), 2U);
  EXPECT_EQ(plan_product(MmType::kW4A8, 4096, 64).tiles.size(), 1U);
}

TEST(MmPlan, PartsOfNAreOnesForEachCore) {
  const MmPlan plan = plan_product(MmType::kInt8, 4096, 4096, 3);
  ASSERT_EQ(plan.tiles.size(), 3U);
  EXPECT_EQ(plan.tiles[0].n, 1376);
  EXPECT_EQ(plan.tiles[2].n, 4096 - 2 * 1376);
}

TEST(MmPlan, BucketsLeaveOutTheRowsThatKeepASecondCopy) {
  EXPECT_EQ(row_buckets(false), (std::vector<std::int64_t>{8, 16, 32, 64, 128, 256, 512}));
  EXPECT_EQ(row_buckets(true).front(), 1);
}

TEST(MmPlan, RowsTakeTheBucketThatHoldsThemOrOneThatTheyFill) {
  const auto buckets = row_buckets(false);
  EXPECT_EQ(next_bucket(1, buckets), 8);
  EXPECT_EQ(next_bucket(33, buckets), 32) << "and then 8 for the one that is left";
  EXPECT_EQ(next_bucket(100, buckets), 128);
  EXPECT_EQ(next_bucket(512, buckets), 512);
  EXPECT_EQ(next_bucket(4000, buckets), 512);
}

}  // namespace
}  // namespace corelane::ggml
