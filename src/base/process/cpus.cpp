#include "base/process/cpus.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <thread>

#include "base/process/group_limits.h"
#include "corelane/base/cpus.h"

namespace corelane {
namespace {

double quota() {
  static const double kQuota = group_cpus();
  return kQuota;
}

/// Of a thread, 0: of the calling one. Nothing where the system does not tell it.
std::optional<cpu_set_t> affinity_of(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(thread, sizeof(set), &set) != 0) return std::nullopt;
  return set;
}

std::size_t count_of_affine_cpus(pid_t thread = 0) {
  const auto set = affinity_of(thread);
  return set ? static_cast<std::size_t>(CPU_COUNT(&*set)) : std::thread::hardware_concurrency();
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
  const auto set = affinity_of(0);
  for (std::size_t cpu = 0; set && cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &*set)) numbers.push_back(cpu);
  return numbers;
}

void leave_cpus(const CpuBits& cpus) noexcept {
  static_assert(CpuBits().size() == CPU_SETSIZE);
  const auto before = affinity_of(0);
  if (!before) return;
  cpu_set_t others = *before;
  for (std::size_t cpu = 0; cpu < cpus.size(); ++cpu)
    if (cpus[cpu]) CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) == 0 || CPU_EQUAL(&others, &*before)) return;
  if (sched_setaffinity(0, sizeof(others), &others) != 0) return;
  // All CPUs stand for those of the control group, which may get more later. Where that gives more
  // than before, the thread had an affinity of its own.
  cpu_set_t every;
  std::memset(&every, 0xff, sizeof(every));
  if (sched_setaffinity(0, sizeof(every), &every) == 0)
    if (const auto now = affinity_of(0); now && CPU_EQUAL(&*now, &*before)) return;
  sched_setaffinity(0, sizeof(*before), &*before);
}

std::size_t process_cpus() {
  // The process's number is that of its main thread.
  static const std::size_t kCpus = whole_cpus_within(count_of_affine_cpus(getpid()), quota());
  return kCpus;
}

}  // namespace corelane
