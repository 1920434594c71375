/// For tests: a thread that stays on one CPU.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <initializer_list>

namespace corelane::testing {

/// Binds the calling thread to these CPUs.
inline void pin_to(std::initializer_list<std::size_t> cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::size_t cpu : cpus) CPU_SET(cpu, &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
}

}  // namespace corelane::testing
