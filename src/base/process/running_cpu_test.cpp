#include "base/process/running_cpu.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "base/process/cpus.h"

namespace corelane {
namespace {

void pin_to(std::size_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
}

TEST(RunningCpu, OfNoThreadIsUnknown) { EXPECT_FALSE(RunningCpu().number()); }

TEST(RunningCpu, OtherThreadsSeeOnWhichCpuAThreadRuns) {
  std::atomic<bool> looked{false};
  std::atomic<std::size_t> pinned{0};
  RunningCpu cpu;
  std::vector<std::optional<std::uint32_t>> seen;
  const std::vector<std::size_t> cpus = affine_cpus();
  std::thread thread([&] {
    cpu = RunningCpu::of_this_thread();
    for (const std::size_t number : cpus) {
      pin_to(number);
      looked = false;
      ++pinned;
      while (!looked) sched_yield();
    }
  });
  for (std::size_t i = 1; i <= cpus.size(); ++i) {
    while (pinned < i) sched_yield();
    seen.push_back(cpu.number());
    looked = true;
  }
  thread.join();
  if (!seen.front()) GTEST_SKIP() << "this system does not tell it";
  for (std::size_t i = 0; i < cpus.size(); ++i) EXPECT_EQ(seen[i], cpus[i]);
}

TEST(RunningCpu, AThreadLeavesCpusAndKeepsItsAffinity) {
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

TEST(RunningCpu, AThreadKeepsAnAffinityOfItsOwn) {
  const std::vector<std::size_t> cpus = affine_cpus();
  if (cpus.size() < 3) GTEST_SKIP() << "this thread has two CPUs at most";
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpus[0], &set);
    CPU_SET(cpus[1], &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
    CpuBits one;
    one[cpus[0]] = true;
    leave_cpus(one);
    EXPECT_EQ(affine_cpus(), (std::vector<std::size_t>{cpus[0], cpus[1]}));
  }).join();
}

}  // namespace
}  // namespace corelane
