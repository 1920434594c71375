/// Permissions of a file that holds what other files say.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <vector>

namespace corelane {

/// The permissions that a file of this folder may have, of 0777, so that nobody reads it who may
/// not read all of `sources`: their common ones, the group's where the new file would have their
/// group. A source that is missing counts for nothing. Follows links.
mode_t widest_mode(const std::vector<std::filesystem::path>& sources,
                   const std::filesystem::path& folder);

}  // namespace corelane
