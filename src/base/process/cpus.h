/// How many CPUs there are to compute on.
#pragma once

#include <cstddef>

namespace corelane {

/// CPUs this process may use, at least 1. Any thread.
std::size_t usable_cpus();

}  // namespace corelane
