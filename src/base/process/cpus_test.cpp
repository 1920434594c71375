#include "base/process/cpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "corelane/base/cpus.h"

namespace corelane {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

TEST(UsableCpus, AreThoseOfTheAffinityWithinTheQuota) {
  EXPECT_EQ(cpus_within(64, kUnlimited), 64U);
  EXPECT_EQ(cpus_within(64, 2.0), 2U);
  EXPECT_EQ(cpus_within(2, 8.0), 2U);
}

TEST(UsableCpus, AQuotaIsRoundedDownForThreadsThatWaitForEachOther) {
  EXPECT_EQ(cpus_within(64, 2.1), 3U);
  EXPECT_EQ(whole_cpus_within(64, 2.9), 2U);
  EXPECT_EQ(whole_cpus_within(64, kUnlimited), 64U);
}

TEST(UsableCpus, TheNumbersAreThoseOfTheAffinity) {
  const std::vector<std::size_t> cpus = affine_cpus();
  ASSERT_FALSE(cpus.empty());
  EXPECT_TRUE(std::ranges::is_sorted(cpus));
  EXPECT_GE(cpus.size(), usable_cpus());
}

TEST(UsableCpus, AreAtLeastOne) {
  for (const auto within : {cpus_within, whole_cpus_within}) {
    EXPECT_EQ(within(4, 0.25), 1U);
    EXPECT_EQ(within(0, 4.0), 1U);
  }
  EXPECT_GE(usable_cpus(), whole_cpus());
  EXPECT_GE(whole_cpus(), 1U);
  EXPECT_GE(process_cpus(), 1U);
}

}  // namespace
}  // namespace corelane
