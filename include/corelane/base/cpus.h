/// How many CPUs there are to compute on.
#pragma once

#include <cstddef>

#include "corelane/base/api.h"

namespace corelane {

/// CPUs that the calling thread and those it makes may use, at least 1: those of its affinity,
/// which cpusets and taskset narrow, and no more than the quota of the process's control groups
/// (cgroups(7), cpu.max), as a container has one, rounded up: 3 where it is 2.5. Virtual cores
/// beyond that only take turns. The quota is read once. Any thread.
CORELANE_API std::size_t usable_cpus();

}  // namespace corelane
