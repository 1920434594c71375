/// What the control groups of a process allow it (cgroups(7)).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace corelane {

// The least limit of the groups that `groups` names, a file like /proc/self/cgroup, and of those
// above them. `mount` is where the groups lie, /sys/fs/cgroup. Groups that are not there, as those
// of the host in a container, count as the nearest one above them. Any thread.

/// Bytes of memory: memory.max in a folder for each group of version 2, and
/// memory.limit_in_bytes below memory/ of version 1. The largest number where none has a limit.
std::uint64_t group_memory(std::string_view groups, const std::filesystem::path& mount);
/// CPUs that the groups may keep busy on average: the quota by its period, of cpu.max in version 2,
/// of cpu.cfs_quota_us and cpu.cfs_period_us below cpu/ in version 1. Infinity where none has a
/// quota.
double group_cpus(std::string_view groups, const std::filesystem::path& mount);

/// The same of this process.
std::uint64_t group_memory();
double group_cpus();

}  // namespace corelane
