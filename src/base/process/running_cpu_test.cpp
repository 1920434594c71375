#include "base/process/running_cpu.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "base/process/cpus.h"
#include "base/process/testing/pinned.h"

namespace corelane {
namespace {

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
      testing::pin_to({number});
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

}  // namespace
}  // namespace corelane
