/// The CPUs of an affinity and a quota.
#pragma once

#include <cstddef>

namespace corelane {

/// usable_cpus() for this many CPUs of the affinity and a quota, infinity where there is none.
std::size_t cpus_within(std::size_t affine, double quota) noexcept;

}  // namespace corelane
