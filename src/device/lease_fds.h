/// Descriptors that a forked child must not keep.
#pragma once

#include <cstdint>

namespace corelane::device {

/// A descriptor that the children of this process close before fork() returns in them: a lock of
/// its open file description ends with the last descriptor, so a child would keep it held. Unlocked
/// and closed on destruction, by the process that made it. Move-only.
class UnsharedFd {
 public:
  /// Opens a file of a folder as openat() does, with O_CLOEXEC; -1 and errno when that fails.
  static UnsharedFd open(int folder, const char* name, int flags, unsigned mode);

  UnsharedFd() noexcept = default;
  UnsharedFd(UnsharedFd&& other) noexcept;
  UnsharedFd& operator=(UnsharedFd&& other) noexcept;
  ~UnsharedFd();

  /// -1 where there is none, and in a forked child.
  int get() const noexcept;
  explicit operator bool() const noexcept { return get() >= 0; }

  /// A place of the list that the child goes through; never freed, used again.
  struct Place;

 private:
  void close() noexcept;
  Place* place_ = nullptr;
  std::uint64_t forks_ = 0;  ///< fork_count() when it was opened.
};

}  // namespace corelane::device
