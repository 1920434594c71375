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
  std::thread([&] {
    std::vector<std::uint32_t> left;
    for (const std::size_t cpu : cpus)
      if (cpu != cpus.back()) left.push_back(static_cast<std::uint32_t>(cpu));
    // The kernel may move it back before it looks: not each time.
    bool moved = false;
    for (int i = 0; i < 100 && !moved; ++i) {
      leave_cpus(left);
      moved = static_cast<std::size_t>(sched_getcpu()) == cpus.back();
    }
    EXPECT_TRUE(moved);
    EXPECT_EQ(affine_cpus(), cpus);
    // There is nowhere to go from these.
    left.push_back(static_cast<std::uint32_t>(cpus.back()));
    leave_cpus(left);
    leave_cpus({});
    EXPECT_EQ(affine_cpus(), cpus);
  }).join();
}

}  // namespace
}  // namespace corelane
