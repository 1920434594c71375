#include "base/process/cpus.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace corelane {

/// By the calling thread's affinity, which cpusets and taskset narrow.
std::size_t usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max<std::size_t>(1, static_cast<std::size_t>(CPU_COUNT(&set)));
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace corelane
