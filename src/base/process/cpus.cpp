#include "base/process/cpus.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "base/process/group_limits.h"
#include "corelane/base/cpus.h"

namespace corelane {

std::size_t cpus_within(std::size_t affine, double quota) noexcept {
  // Threads of a job wait for each other in a loop: one more than the quota pays for would stop
  // all of them for a part of each period.
  const auto whole = static_cast<std::size_t>(std::clamp(quota, 1.0, 1e6));
  return std::max<std::size_t>(1, std::min(affine, whole));
}

std::size_t usable_cpus() {
  static const double kQuota = group_cpus();
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool known = sched_getaffinity(0, sizeof(set), &set) == 0;
  const std::size_t affine = known ? static_cast<std::size_t>(CPU_COUNT(&set))
                                   : std::size_t{std::thread::hardware_concurrency()};
  return cpus_within(affine, kQuota);
}

}  // namespace corelane
