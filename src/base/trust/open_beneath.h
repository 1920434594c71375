/// Opening a file beneath a folder that other users may write to.
#pragma once

#include <filesystem>

namespace corelane {

/// Opens a file, given by plain names relative to an open folder, and follows no link on the way:
/// openat2() with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, or open_by_steps() where the kernel or a
/// sandbox lacks it. -1 and errno: ELOOP or EXDEV where a link or ".." is in the path.
int open_beneath(int folder, const std::filesystem::path& relative, int flags);

/// The same name by name, each relative to the folder before it: what has been opened cannot be
/// exchanged any more. ENOTDIR where a link stands for a folder.
int open_by_steps(int folder, const std::filesystem::path& relative, int flags);

}  // namespace corelane
