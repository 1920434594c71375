#include "base/trust/open_beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>

namespace corelane {
namespace {

int open_in_one_step(int folder, const char* path, int flags) {
  open_how how{};
  how.flags = static_cast<__u64>(static_cast<unsigned>(flags));
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  long fd = -1;
  do {
    fd = ::syscall(SYS_openat2, folder, path, &how, sizeof how);
  } while (fd < 0 && (errno == EINTR || errno == EAGAIN));
  return static_cast<int>(fd);
}

bool is_plain(const std::filesystem::path& relative) {
  if (relative.empty() || relative.is_absolute()) return false;
  for (const auto& part : relative)
    if (part.empty() || part == "." || part == "..") return false;
  return true;
}

}  // namespace

int open_beneath(int folder, const std::filesystem::path& relative, int flags) {
  if (!is_plain(relative)) {
    errno = EXDEV;
    return -1;
  }
  const int fd = open_in_one_step(folder, relative.c_str(), flags);
  // Sandboxes refuse calls that they do not know with EPERM.
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return fd;
  return open_by_steps(folder, relative, flags);
}

int open_by_steps(int folder, const std::filesystem::path& relative, int flags) {
  if (!is_plain(relative)) {
    errno = EXDEV;
    return -1;
  }
  int at = folder;
  for (auto part = relative.begin(); part != relative.end(); ++part) {
    const bool last = std::next(part) == relative.end();
    const int next =
        ::openat(at, part->c_str(), O_NOFOLLOW | (last ? flags : O_PATH | O_DIRECTORY | O_CLOEXEC));
    const int saved = errno;
    if (at != folder) ::close(at);
    errno = saved;
    at = next;
    if (at < 0) break;
  }
  return at;
}

}  // namespace corelane
