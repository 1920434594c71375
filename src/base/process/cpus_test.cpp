#include "base/process/cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "base/process/testing/pinned.h"
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

TEST(Cpus, AThreadLeavesCpusAndKeepsItsAffinity) {
  const std::vector<std::size_t> cpus = affine_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "this thread has one CPU";
  const auto leaves = [](std::size_t from, std::size_t to) {
    CpuBits all_but_to;
    for (const std::size_t cpu : affine_cpus()) all_but_to[cpu] = cpu != to;
    CpuBits all_but_from;
    for (const std::size_t cpu : affine_cpus()) all_but_from[cpu] = cpu != from;
    // The kernel may move it back before it looks: not each time.
    for (int i = 0; i < 100; ++i) {
      leave_cpus(all_but_from);
      const bool there = static_cast<std::size_t>(sched_getcpu()) == from;
      leave_cpus(all_but_to);
      if (there && static_cast<std::size_t>(sched_getcpu()) == to) return true;
    }
    return false;
  };
  std::thread([&] {
    EXPECT_TRUE(leaves(cpus.front(), cpus.back()));
    EXPECT_EQ(affine_cpus(), cpus);
    CpuBits all;
    leave_cpus(all.set());
    leave_cpus({});
    EXPECT_EQ(affine_cpus(), cpus);
  }).join();
}

TEST(Cpus, AThreadKeepsAnAffinityOfItsOwn) {
  const std::vector<std::size_t> cpus = affine_cpus();
  if (cpus.size() < 3) GTEST_SKIP() << "this thread has two CPUs at most";
  std::thread([&] {
    testing::pin_to({cpus[0], cpus[1]});
    CpuBits one;
    one[cpus[0]] = true;
    leave_cpus(one);
    EXPECT_EQ(affine_cpus(), (std::vector<std::size_t>{cpus[0], cpus[1]}));
  }).join();
}

}  // namespace
}  // namespace corelane
