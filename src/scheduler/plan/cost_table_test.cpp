#include "scheduler/plan/cost_table.h"

#include <gtest/gtest.h>

#include <limits>

namespace corelane::scheduler {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kHuge = std::numeric_limits<std::uint32_t>::max();

/// Sizes and times of one group, each measured once.
CostTable table_of(const std::vector<std::pair<std::uint32_t, int>>& measured) {
  CostTable table(1);
  for (const auto& [size, ms] : measured) table.ended(0, size, milliseconds(ms));
  return table;
}

TEST(CostTable, KnowsNothingAtFirst) {
  CostTable table(2);
  EXPECT_FALSE(table.known(0));
  EXPECT_EQ(table.of(0, 4), Duration{0});
  table.ended(1, 4, milliseconds(8));
  EXPECT_FALSE(table.known(0));
  EXPECT_TRUE(table.known(1));
  EXPECT_EQ(table.of(0, 4), Duration{0});
  EXPECT_EQ(table.of(1, 4), milliseconds(8));
}

TEST(CostTable, ALineGoesThroughTheNearestSizes) {
  const CostTable table = table_of({{2, 6}, {4, 8}, {8, 12}});  // S(n) = 4 + n ms.
  for (std::uint32_t n = 1; n <= 20; ++n) EXPECT_EQ(table.of(0, n), milliseconds(4 + n)) << n;
}

TEST(CostTable, OfOneSizeLargerOnesLookTheSameAndSmallerOnesTheirShare) {
  const CostTable table = table_of({{4, 8}});
  EXPECT_EQ(table.of(0, 8), milliseconds(8));
  EXPECT_EQ(table.of(0, 1), milliseconds(2));
}

TEST(CostTable, EstimatesNeverFallWithTheSize) {
  const CostTable table = table_of({{1, 9}, {4, 5}, {8, 7}});
  EXPECT_EQ(table.of(0, 1), milliseconds(9));
  EXPECT_EQ(table.of(0, 2), milliseconds(9));
  EXPECT_EQ(table.of(0, 6), milliseconds(9));
  EXPECT_EQ(table.of(0, 16), milliseconds(11));
}

TEST(CostTable, APartTakesAtLeastItsShareOfALargerCall) {
  // The line through 1 and 2 says 3 ms for 3, the line through 2 and 100 no more than 4.
  const CostTable table = table_of({{1, 1}, {2, 2}, {4, 40}});
  EXPECT_EQ(table.of(0, 3), milliseconds(30));
  EXPECT_EQ(table_of({{7, 10}, {8, 20}}).of(0, 4), milliseconds(10));
}

TEST(CostTable, BeyondTheLargestSizeTheTimePerItemDoesNotRise) {
  EXPECT_EQ(table_of({{7, 10}, {8, 20}}).of(0, 16), milliseconds(40));
}

TEST(CostTable, AnAverageStartsEvenAndThenForgets) {
  CostTable table(1);
  for (const int ms : {1, 2, 3, 6}) table.ended(0, 4, milliseconds(ms));
  EXPECT_EQ(table.of(0, 4), milliseconds(3));
  for (int i = 0; i < 4; ++i) table.ended(0, 4, milliseconds(3));
  table.ended(0, 4, milliseconds(11));
  EXPECT_EQ(table.of(0, 4), milliseconds(4));
  for (int i = 0; i < 100; ++i) table.ended(0, 4, milliseconds(20));
  EXPECT_GT(table.of(0, 4), Duration(milliseconds(20)) * 0.999);
}

TEST(CostTable, TheSizesThatRanLastAreKept) {
  CostTable table(1);
  for (std::uint32_t n = 1; n <= CostTable::kSizes; ++n) table.ended(0, n, milliseconds(100));
  table.ended(0, 1, milliseconds(100));
  for (std::uint32_t n = 0; n < 10; ++n) table.ended(0, 1000 + n, milliseconds(1000));
  // 2..11 went: 1 is measured, 2 is on the line from 1 to 12, which is level.
  EXPECT_EQ(table.of(0, 1), milliseconds(100));
  EXPECT_EQ(table.of(0, 2), milliseconds(100));
  EXPECT_EQ(table.of(0, 1009), milliseconds(1000));
  EXPECT_GT(table.of(0, 65), milliseconds(100));
}

TEST(CostTable, HostileValuesAreHeldToTheirBounds) {
  CostTable table(1);
  table.ended(1, 1, milliseconds(1));
  table.ended(kHuge, 1, milliseconds(1));
  table.ended(0, 0, milliseconds(1));
  EXPECT_FALSE(table.known(0));
  EXPECT_FALSE(table.known(kHuge));
  EXPECT_EQ(table.of(kHuge, 1), Duration{0});
  table.ended(0, 1, Duration::min());
  EXPECT_EQ(table.of(0, 1), Duration{0});
  table.ended(0, 2, Duration::max());
  table.ended(0, 3, Duration::max());
  EXPECT_GT(table.of(0, 2), milliseconds(1));
  EXPECT_GE(table.of(0, kHuge), table.of(0, 3));
  EXPECT_EQ(table.of(0, 0), Duration{0});
}

}  // namespace
}  // namespace corelane::scheduler
