#include "base/process/group_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "base/text_parts.h"

namespace corelane {
namespace {

namespace fs = std::filesystem;

/// A version of control groups: where the memory of a group is limited.
struct GroupTree {
  fs::path folder;
  const char* limit;
};

/// The least limit of the group at `path` in the tree, and of those above it. "max" is none.
std::uint64_t least_limit(const GroupTree& tree, const fs::path& path) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (fs::path group = path.relative_path();; group = group.parent_path()) {
    std::uint64_t limit = 0;
    if (std::ifstream(tree.folder / group / tree.limit) >> limit) least = std::min(least, limit);
    if (group.empty()) return least;
  }
}

/// `controllers`: names with commas between them.
bool names_memory(std::string_view controllers) {
  return fmt::format(",{},", controllers).find(",memory,") != std::string::npos;
}

}  // namespace

std::uint64_t group_memory(std::string_view groups, const fs::path& mount) {
  const GroupTree second{mount, "memory.max"};
  const GroupTree first{mount / "memory", "memory.limit_in_bytes"};
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  // number:controllers:path
  (void)for_each_part(groups, '\n', [&](std::string_view line) -> Status {
    const std::size_t controllers = line.find(':');
    const std::size_t path =
        line.find(':', controllers == line.npos ? line.size() : controllers + 1);
    if (path == line.npos) return {};
    const std::string_view names = line.substr(controllers + 1, path - controllers - 1);
    const fs::path group(line.substr(path + 1));
    if (names.empty()) least = std::min(least, least_limit(second, group));
    if (names_memory(names)) least = std::min(least, least_limit(first, group));
    return {};
  });
  return least;
}

std::uint64_t group_memory() {
  std::ifstream file("/proc/self/cgroup");
  const std::string groups(std::istreambuf_iterator<char>(file), {});
  // Without /proc, a container's own limit is still at the root.
  return group_memory(groups.empty() ? "0::/" : groups, "/sys/fs/cgroup");
}

}  // namespace corelane
