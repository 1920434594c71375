#include "base/trust/source_mode.h"

#include <sys/stat.h>
#include <unistd.h>

namespace corelane {
namespace {

/// The group of a file that this process makes in `folder`.
gid_t group_of_new_files(const std::filesystem::path& folder) {
  struct stat info {};
  const std::filesystem::path place = folder.empty() ? std::filesystem::path(".") : folder;
  const bool given = ::stat(place.c_str(), &info) == 0 && (info.st_mode & S_ISGID) != 0;
  return given ? info.st_gid : ::getegid();
}

}  // namespace

mode_t widest_mode(const std::vector<std::filesystem::path>& sources,
                   const std::filesystem::path& folder) {
  mode_t widest = 0777;
  const gid_t group = group_of_new_files(folder);
  for (const auto& source : sources) {
    struct stat info {};
    if (::stat(source.c_str(), &info) != 0) continue;
    mode_t mode = info.st_mode & 0777U;
    // Another group has what everybody has.
    if (info.st_gid != group) mode &= ~mode_t{0070} | ((mode & 0007U) << 3U);
    widest &= mode;
  }
  return widest;
}

}  // namespace corelane
