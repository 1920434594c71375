#include "base/process/group_limits.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <string>

namespace corelane {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
constexpr double kNoQuota = std::numeric_limits<double>::infinity();

class GroupLimits : public ::testing::Test {
 protected:
  GroupLimits() : mount_(fs::path(::testing::TempDir()) / "group_limits") {
    fs::remove_all(mount_);
  }
  ~GroupLimits() override { fs::remove_all(mount_); }

  void limit(const fs::path& file, const std::string& text) const {
    fs::create_directories((mount_ / file).parent_path());
    std::ofstream(mount_ / file) << text << '\n';
  }
  std::uint64_t of(std::string_view groups) const { return group_memory(groups, mount_); }
  double cpus_of(std::string_view groups) const { return group_cpus(groups, mount_); }

 private:
  fs::path mount_;
};

TEST_F(GroupLimits, AGroupWithoutALimitHasThatOfTheGroupsAboveIt) {
  limit("user.slice/one.scope/memory.max", "max");
  limit("user.slice/memory.max", "4096");
  limit("system.slice/memory.max", "17");
  EXPECT_EQ(of("0::/user.slice/one.scope\n"), 4096U);
}

TEST_F(GroupLimits, TheLeastLimitOnTheWayToTheRootCounts) {
  limit("a/b/memory.max", "8192");
  limit("a/memory.max", "4096");
  limit("memory.max", "16384");
  EXPECT_EQ(of("0::/a/b"), 4096U);
  EXPECT_EQ(of("0::/"), 16384U);
}

TEST_F(GroupLimits, GroupsOfVersionOneAreThoseOfTheControllerOfMemory) {
  limit("memory/pod/memory.limit_in_bytes", "4096");
  limit("memory/cpu/memory.limit_in_bytes", "1");
  EXPECT_EQ(of("3:cpu,cpuacct:/cpu\n2:hugetlb,memory:/pod\n0::/\n"), 4096U);
}

TEST_F(GroupLimits, InAContainerTheHostsNameOfTheGroupIsNotThereAndItsRootCounts) {
  limit("memory.max", "4096");
  EXPECT_EQ(of("0::/docker/0123456789abcdef"), 4096U);
}

TEST_F(GroupLimits, WhatIsNoListOfGroupsHasNoLimit) {
  limit("memory.max", "4096");
  limit("odd/memory.max", "not a number");
  for (const char* text : {"", "\n\n", "0", "0:", "memory:/", ":memory"})
    EXPECT_EQ(of(text), kNone) << text;
  EXPECT_EQ(of("0::/odd"), 4096U);
  EXPECT_EQ(group_memory("0::/", "/nowhere"), kNone);
}

TEST_F(GroupLimits, CpusAreTheQuotaByItsPeriod) {
  limit("pod/app/cpu.max", "max 100000");
  limit("pod/cpu.max", "250000 100000");
  limit("cpu.max", "400000 100000");
  EXPECT_EQ(cpus_of("0::/pod/app"), 2.5);
  EXPECT_EQ(cpus_of("0::/"), 4);
}

TEST_F(GroupLimits, OfVersionOneQuotaAndPeriodAreFilesOfTheirOwn) {
  limit("cpu/pod/cpu.cfs_quota_us", "150000");
  limit("cpu/pod/cpu.cfs_period_us", "50000");
  limit("cpu/cpu.cfs_quota_us", "-1");
  limit("cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cpus_of("4:memory:/pod\n3:cpu,cpuacct:/pod\n"), 3);
  limit("cpu,cpuacct/pod/cpu.cfs_quota_us", "100000");
  limit("cpu,cpuacct/pod/cpu.cfs_period_us", "50000");
  EXPECT_EQ(cpus_of("3:cpu,cpuacct:/pod\n"), 2) << "without a link, the folder of both";
  EXPECT_EQ(cpus_of("3:cpu,cpuacct:/\n"), kNoQuota);
}

TEST_F(GroupLimits, WhatIsNoQuotaDoesNotLimit) {
  for (const char* text :
       {"", "max", "max 100000", "0 100000", "100000", "100000 0", "-5 7", "?"}) {
    limit("odd/cpu.max", text);
    EXPECT_EQ(cpus_of("0::/odd"), kNoQuota) << text;
  }
  EXPECT_EQ(group_cpus("0::/", "/nowhere"), kNoQuota);
}

}  // namespace
}  // namespace corelane
