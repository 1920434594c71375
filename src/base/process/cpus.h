/// CPUs for threads that wait for each other, or work side by side.
#pragma once

#include <bitset>
#include <cstddef>
#include <vector>

namespace corelane {

/// usable_cpus() for this many CPUs of the affinity and a quota, infinity where there is none.
std::size_t cpus_within(std::size_t affine, double quota) noexcept;

/// CPUs for the threads of one job, which wait for each other in a loop: as usable_cpus(), but the
/// quota rounded down. One thread more than it pays for would stop all of them for a part of each
/// period. Any thread.
std::size_t whole_cpus();
/// The same for this many CPUs and a quota.
std::size_t whole_cpus_within(std::size_t affine, double quota) noexcept;

/// The numbers of the CPUs of the calling thread's affinity, from 0 on and ascending; none where
/// the system does not tell them. Any thread.
std::vector<std::size_t> affine_cpus();

/// By their numbers; as many as a cpu_set_t has.
using CpuBits = std::bitset<1024>;

/// Moves the calling thread to another CPU than these, if its affinity has one. The kernel chooses
/// it, and may move the thread again at once. The affinity is as before afterwards; one that has
/// all CPUs of the process's control group follows that if it changes later. What another thread
/// changes of it meanwhile is lost. Nothing where the system refuses it.
void leave_cpus(const CpuBits& cpus) noexcept;

/// CPUs of the process, by its main thread's affinity and within the whole CPUs of the quota: how
/// many of its threads may wait in a loop. Asked for once. Any thread.
std::size_t process_cpus();

}  // namespace corelane
