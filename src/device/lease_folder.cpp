#include "device/lease_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "base/process/errno_text.h"
#include "base/trust/secure_environment.h"

namespace corelane::device {
namespace {

namespace fs = std::filesystem;

/// `named`: by CORELANE_RUN_DIR, so that it may be a link, or a folder that users share.
struct FolderPlace {
  fs::path path;
  bool named = false;
};

bool is_folder_of_ours(const fs::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
}

FolderPlace place() {
  if (fs::path given = environment_text("CORELANE_RUN_DIR"); !given.empty()) {
    if (!given.has_filename()) given = given.parent_path();  // A final '/'.
    return {given, true};
  }
  // Kept by sudo and su, where it is another user's.
  const fs::path session = environment_text("XDG_RUNTIME_DIR");
  if (!session.empty() && is_folder_of_ours(session)) return {session, true};
  std::error_code ignored;
  const fs::path temporary = fs::temp_directory_path(ignored);
  return {(temporary.empty() ? fs::path("/tmp") : temporary) /
          fmt::format("corelane-run-{}", ::geteuid())};
}

Failure unusable(const fs::path& path, const std::string& why) {
  return error(Code::kIo,
               "cannot use the lease folder '{}': {}; set CORELANE_RUN_DIR to a folder of your "
               "own, or to one of root that users share (mode 1777, or 1770 and a group)",
               path.string(), why);
}

/// Why the locks in such a folder could be another user's doing; empty where they could not.
std::string distrust(const struct stat& info, bool may_be_shared) {
  if (info.st_uid != ::geteuid() && !(may_be_shared && info.st_uid == 0))
    return fmt::format("it belongs to user {}", info.st_uid);
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  if (!may_be_shared) return "other users may write to it";
  if ((info.st_mode & S_ISVTX) != 0) return {};
  return "other users may write to it, and it lacks the sticky bit (chmod +t)";
}

Result<std::optional<LeaseFolder>> open_folder(const FolderPlace& at) {
  const int links = at.named ? 0 : O_NOFOLLOW;
  UniqueFd fd(::open(at.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | links));
  if (!fd && errno == ENOENT) return std::nullopt;
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return unusable(at.path, errno_text());
  if (const std::string why = distrust(info, at.named); !why.empty()) return unusable(at.path, why);
  return LeaseFolder{at.path, std::move(fd), (info.st_mode & (S_IWGRP | S_IWOTH)) != 0};
}

}  // namespace

Result<LeaseFolder> make_lease_folder() {
  const FolderPlace at = place();
  std::error_code problem;
  if (at.path.has_parent_path()) fs::create_directories(at.path.parent_path(), problem);
  if (problem) return unusable(at.path, problem.message());
  if (::mkdir(at.path.c_str(), 0700) != 0 && errno != EEXIST)
    return unusable(at.path, errno_text());
  CORELANE_ASSIGN(auto folder, open_folder(at));
  if (!folder) return unusable(at.path, errno_text(ENOENT));
  return std::move(*folder);
}

Result<std::optional<LeaseFolder>> find_lease_folder() { return open_folder(place()); }

}  // namespace corelane::device
