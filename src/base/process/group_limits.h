/// How much memory the control groups of a process allow it (cgroups(7)).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace corelane {

/// The least limit of the groups that `groups` names, a file like /proc/self/cgroup, and of those
/// above them; the largest number where none has a limit. `mount` is where the groups lie,
/// /sys/fs/cgroup: memory.max in a folder for each group of version 2, and
/// memory.limit_in_bytes below memory/ of version 1. Groups that are not there, as those of the
/// host in a container, count as the nearest one above them. Any thread.
std::uint64_t group_memory(std::string_view groups, const std::filesystem::path& mount);

/// The same of this process.
std::uint64_t group_memory();

}  // namespace corelane
