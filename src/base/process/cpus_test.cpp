#include "base/process/cpus.h"

#include <gtest/gtest.h>

#include <limits>

#include "corelane/base/cpus.h"

namespace corelane {
namespace {

TEST(UsableCpus, AreThoseOfTheAffinityWithinTheWholeCpusOfTheQuota) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  EXPECT_EQ(cpus_within(64, kNone), 64U);
  EXPECT_EQ(cpus_within(64, 2.0), 2U);
  EXPECT_EQ(cpus_within(64, 2.9), 2U);
  EXPECT_EQ(cpus_within(2, 8.0), 2U);
}

TEST(UsableCpus, AreAtLeastOne) {
  EXPECT_EQ(cpus_within(4, 0.25), 1U);
  EXPECT_EQ(cpus_within(0, 4.0), 1U);
  EXPECT_GE(usable_cpus(), 1U);
}

}  // namespace
}  // namespace corelane
