#include "base/process/group_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <string>

#include "base/text_parts.h"

namespace corelane {
namespace {

namespace fs = std::filesystem;

/// What the group in a folder allows by itself; the largest number where it does not say.
template <class T>
using LimitIn = std::function<T(const fs::path& folder)>;

template <class T>
constexpr T no_limit() {
  using Limits = std::numeric_limits<T>;
  return Limits::has_infinity ? Limits::infinity() : Limits::max();
}

/// The least limit of the group at `path` in the tree below `root`, and of those above it.
template <class T>
T least_limit(const fs::path& root, const fs::path& path, const LimitIn<T>& limit_in) {
  T least = no_limit<T>();
  for (fs::path group = path.relative_path();; group = group.parent_path()) {
    least = std::min(least, limit_in(root / group));
    if (group.empty()) return least;
  }
}

/// `controllers`: names with commas between them.
bool names(std::string_view controllers, std::string_view controller) {
  return fmt::format(",{},", controllers).find(fmt::format(",{},", controller)) !=
         std::string::npos;
}

/// Of the groups of version 2, and of those of `controller` in version 1.
template <class T>
T least_of(std::string_view groups, const fs::path& mount, std::string_view controller,
           const LimitIn<T>& second, const LimitIn<T>& first) {
  T least = no_limit<T>();
  // number:controllers:path
  (void)for_each_part(groups, '\n', [&](std::string_view line) -> Status {
    const std::size_t controllers = line.find(':');
    const std::size_t path =
        line.find(':', controllers == line.npos ? line.size() : controllers + 1);
    if (path == line.npos) return {};
    const std::string_view named = line.substr(controllers + 1, path - controllers - 1);
    const fs::path group(line.substr(path + 1));
    if (named.empty()) least = std::min(least, least_limit(mount, group, second));
    if (!names(named, controller)) return {};
    // The folder of controllers that share one has the names of all, and mostly links of each name.
    for (const std::string_view folder : {controller, named})
      least = std::min(least, least_limit(mount / folder, group, first));
    return {};
  });
  return least;
}

/// "max" and -1 are none.
double cpus_of(double quota, double period) {
  return quota > 0 && period > 0 ? quota / period : no_limit<double>();
}

std::string groups_of_process() {
  std::ifstream file("/proc/self/cgroup");
  std::string groups(std::istreambuf_iterator<char>(file), {});
  // Without /proc, a container's own limit is still at the root.
  return groups.empty() ? "0::/" : groups;
}

constexpr const char* kMount = "/sys/fs/cgroup";

}  // namespace

std::uint64_t group_memory(std::string_view groups, const fs::path& mount) {
  const auto from = [](const char* file) -> LimitIn<std::uint64_t> {
    return [file](const fs::path& folder) {
      std::uint64_t limit = 0;
      return std::ifstream(folder / file) >> limit ? limit : no_limit<std::uint64_t>();
    };
  };
  return least_of(groups, mount, "memory", from("memory.max"), from("memory.limit_in_bytes"));
}

double group_cpus(std::string_view groups, const fs::path& mount) {
  const LimitIn<double> second = [](const fs::path& folder) {
    double quota = 0;
    double period = 0;
    std::ifstream(folder / "cpu.max") >> quota >> period;
    return cpus_of(quota, period);
  };
  const LimitIn<double> first = [](const fs::path& folder) {
    double quota = 0;
    double period = 0;
    std::ifstream(folder / "cpu.cfs_quota_us") >> quota;
    std::ifstream(folder / "cpu.cfs_period_us") >> period;
    return cpus_of(quota, period);
  };
  return least_of(groups, mount, "cpu", second, first);
}

std::uint64_t group_memory() { return group_memory(groups_of_process(), kMount); }

double group_cpus() { return group_cpus(groups_of_process(), kMount); }

}  // namespace corelane
