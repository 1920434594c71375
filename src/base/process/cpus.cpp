#include "base/process/cpus.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/process/group_limits.h"
#include "corelane/base/cpus.h"

namespace corelane {
namespace {

double quota() {
  static const double kQuota = group_cpus();
  return kQuota;
}

/// 0: of the calling thread.
std::size_t count_of_affine_cpus(pid_t thread = 0) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(thread, sizeof(set), &set) == 0)
    return static_cast<std::size_t>(CPU_COUNT(&set));
  return std::thread::hardware_concurrency();
}

std::size_t at_least_one(std::size_t affine, double quota) {
  constexpr double kMost = 1e6;  // Infinity has no integer.
  return std::max<std::size_t>(1,
                               std::min(affine, static_cast<std::size_t>(std::min(quota, kMost))));
}

}  // namespace

std::size_t cpus_within(std::size_t affine, double quota) noexcept {
  return at_least_one(affine, std::ceil(quota));
}

std::size_t whole_cpus_within(std::size_t affine, double quota) noexcept {
  return at_least_one(affine, std::floor(quota));
}

std::size_t usable_cpus() { return cpus_within(count_of_affine_cpus(), quota()); }

std::size_t whole_cpus() { return whole_cpus_within(count_of_affine_cpus(), quota()); }

std::vector<std::size_t> affine_cpus() {
  std::vector<std::size_t> numbers;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return numbers;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) numbers.push_back(cpu);
  return numbers;
}

std::size_t process_cpus() {
  // The main thread has the number of the process.
  static const std::size_t kCpus = whole_cpus_within(count_of_affine_cpus(getpid()), quota());
  return kCpus;
}

}  // namespace corelane
