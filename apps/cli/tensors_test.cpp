#include "cli/tensors.h"

#include <gtest/gtest.h>

#include <limits>

namespace corelane::cli {
namespace {

constexpr double kInf64 = std::numeric_limits<double>::infinity();
constexpr double kNaN64 = std::numeric_limits<double>::quiet_NaN();

TEST(Difference, NaNAndEachInfinityAreAlikeToThemselvesOnly) {
  EXPECT_EQ(
      difference({kInf64, -kInf64, kNaN64, 1}, {kInf64, -kInf64, kNaN64, 1}).not_finite_differs,
      0U);
  EXPECT_EQ(difference({kInf64, -kInf64}, {-kInf64, kInf64}).not_finite_differs, 2U);
  EXPECT_EQ(
      difference({kInf64, kNaN64, 1, kNaN64}, {kNaN64, -kInf64, kInf64, 2}).not_finite_differs, 4U);
}

TEST(Difference, LargeAndSmallNumbersHaveACosineToo) {
  EXPECT_DOUBLE_EQ(difference({1e200, 1e200}, {1e200, 1e200}).cosine, 1);
  EXPECT_DOUBLE_EQ(difference({1e-200, 1e-200}, {1e-200, 1e-200}).cosine, 1);
  EXPECT_DOUBLE_EQ(difference({5e-324}, {-5e-324}).cosine, -1);
  EXPECT_DOUBLE_EQ(difference({1e-200, 0}, {0, 1e200}).cosine, 0);
  EXPECT_DOUBLE_EQ(difference({0, 0}, {1e200, 0}).cosine, 0);
  EXPECT_DOUBLE_EQ(difference({0, 0}, {0, 0}).cosine, 1);
  constexpr double kMost = std::numeric_limits<double>::max();
  const Difference opposite = difference({kMost}, {-kMost});
  EXPECT_DOUBLE_EQ(opposite.cosine, -1);
  EXPECT_DOUBLE_EQ(opposite.max_error, kMost);  // JSON has no infinity.
  EXPECT_DOUBLE_EQ(opposite.max_relative_error, 2);
}

TEST(UniqueName, NoTwoAreEqualWhateverTheNames) {
  std::set<std::string> taken;
  std::vector<std::string> names;
  for (const char* const name : {"a_b", "a_b.2", "a_b", "a_b", "a_b.2"})
    names.push_back(unique_name(name, taken));
  EXPECT_EQ(taken.size(), names.size());
  EXPECT_EQ(names[0], "a_b");
  EXPECT_EQ(names[1], "a_b.2");
}

TEST(UniqueName, LongOnesAreCutAndStillDiffer) {
  std::set<std::string> taken;
  const std::string first = unique_name(std::string(300, 'x') + "1", taken);
  const std::string second = unique_name(std::string(300, 'x') + "2", taken);
  EXPECT_NE(first, second);
  EXPECT_LE(std::max(first.size(), second.size()), 200U);
}

}  // namespace
}  // namespace corelane::cli
