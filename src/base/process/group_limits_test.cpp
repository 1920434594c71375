#include "base/process/group_limits.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <string>

namespace corelane {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

class GroupMemory : public ::testing::Test {
 protected:
  GroupMemory() : mount_(fs::path(::testing::TempDir()) / "group_memory") {
    fs::remove_all(mount_);
  }
  ~GroupMemory() override { fs::remove_all(mount_); }

  void limit(const fs::path& file, const std::string& text) const {
    fs::create_directories((mount_ / file).parent_path());
    std::ofstream(mount_ / file) << text << '\n';
  }
  std::uint64_t of(std::string_view groups) const { return group_memory(groups, mount_); }

 private:
  fs::path mount_;
};

TEST_F(GroupMemory, AGroupWithoutALimitHasThatOfTheGroupsAboveIt) {
  limit("user.slice/one.scope/memory.max", "max");
  limit("user.slice/memory.max", "4096");
  limit("system.slice/memory.max", "17");
  EXPECT_EQ(of("0::/user.slice/one.scope\n"), 4096U);
}

TEST_F(GroupMemory, TheLeastLimitOnTheWayToTheRootCounts) {
  limit("a/b/memory.max", "8192");
  limit("a/memory.max", "4096");
  limit("memory.max", "16384");
  EXPECT_EQ(of("0::/a/b"), 4096U);
  EXPECT_EQ(of("0::/"), 16384U);
}

TEST_F(GroupMemory, GroupsOfVersionOneAreThoseOfTheControllerOfMemory) {
  limit("memory/pod/memory.limit_in_bytes", "4096");
  limit("memory/cpu/memory.limit_in_bytes", "1");
  EXPECT_EQ(of("3:cpu,cpuacct:/cpu\n2:hugetlb,memory:/pod\n0::/\n"), 4096U);
}

TEST_F(GroupMemory, InAContainerTheHostsNameOfTheGroupIsNotThereAndItsRootCounts) {
  limit("memory.max", "4096");
  EXPECT_EQ(of("0::/docker/0123456789abcdef"), 4096U);
}

TEST_F(GroupMemory, WhatIsNoListOfGroupsHasNoLimit) {
  limit("memory.max", "4096");
  limit("odd/memory.max", "not a number");
  for (const char* text : {"", "\n\n", "0", "0:", "memory:/", ":memory"})
    EXPECT_EQ(of(text), kNone) << text;
  EXPECT_EQ(of("0::/odd"), 4096U);
  EXPECT_EQ(group_memory("0::/", "/nowhere"), kNone);
}

}  // namespace
}  // namespace corelane
