#include "corelane/device/lease.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "device/lease_fds.h"

namespace corelane::device {
namespace {

/// All processes that share a device must find the same folder; CORELANE_RUN_DIR makes them.
std::filesystem::path run_directory() {
  for (const char* name : {"CORELANE_RUN_DIR", "XDG_RUNTIME_DIR"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  std::error_code ignored;
  auto temporary = std::filesystem::temp_directory_path(ignored);
  return temporary.empty() ? std::filesystem::path("/tmp") : temporary;
}

/// The instance's name as part of a file name; different names stay different.
std::string file_stem(const std::string& instance) {
  std::string stem = "corelane-lease-";
  for (const char c : instance) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.';
    stem += plain ? std::string(1, c) : fmt::format("_{:02x}", static_cast<unsigned char>(c));
  }
  return stem;
}

struct Attempt {
  UnsharedFd fd;       ///< Holds the lock when valid.
  std::string holder;  ///< The process that has it otherwise.
};

/// For the message only: the number may be of another process by now.
std::string read_holder(int fd) {
  char text[32] = {};
  const ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
  return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : "unknown";
}

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

Result<UnsharedFd> open_lock_file(const std::filesystem::path& path) {
  // O_NOFOLLOW: in a folder that others may write to, a link could name any file. 0666, less the
  // umask: users of one group may share a device.
  UnsharedFd fd = UnsharedFd::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
  if (fd) return fd;
  return error(Code::kIo,
               "cannot open the lease file '{}': {}; set CORELANE_RUN_DIR to a folder that can "
               "be written",
               path.string(), std::generic_category().message(errno));
}

std::filesystem::path core_file(const std::filesystem::path& folder, const std::string& instance,
                                std::size_t core) {
  return folder / fmt::format("{}-{}.lock", file_stem(instance), core);
}

/// Held while the cores of one lease are looked for: of two that ask for the same free cores at
/// once, one gets them.
Result<UnsharedFd> lock_search(const std::filesystem::path& path) {
  CORELANE_ASSIGN(UnsharedFd fd, open_lock_file(path));
  struct flock lock = whole_file();
  int rc = 0;
  do {
    rc = fcntl(fd.get(), F_OFD_SETLKW, &lock);
  } while (rc != 0 && errno == EINTR);
  if (rc == 0) return fd;
  return error(Code::kIo, "cannot lock the lease file '{}': {}", path.string(),
               std::generic_category().message(errno));
}

/// Locks one core's file. The lock belongs to the open file description, so it also stands between
/// two leases of one process, and the kernel drops it when the last descriptor is closed. The file
/// stays: removing it would let two processes lock two files of one name.
Result<Attempt> try_core(const std::filesystem::path& path) {
  CORELANE_ASSIGN(UnsharedFd fd, open_lock_file(path));
  struct flock lock = whole_file();
  if (fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) {
    // POSIX allows both codes for a lock that another holds.
    if (errno != EAGAIN && errno != EACCES)
      return error(Code::kIo, "cannot lock the lease file '{}': {}", path.string(),
                   std::generic_category().message(errno));
    return Attempt{UnsharedFd(), read_holder(fd.get())};
  }
  const std::string self = std::to_string(getpid());
  if (ftruncate(fd.get(), 0) != 0 ||
      pwrite(fd.get(), self.data(), self.size(), 0) != static_cast<ssize_t>(self.size()))
    return error(Code::kIo, "cannot write the lease file '{}': {}", path.string(),
                 std::generic_category().message(errno));
  return Attempt{std::move(fd), {}};
}

}  // namespace

struct Lease::Impl {
  std::uint64_t bits = 0;
  std::vector<UnsharedFd> locks;
};

Lease::Lease(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Lease::Lease(Lease&&) noexcept = default;
Lease& Lease::operator=(Lease&&) noexcept = default;
Lease::~Lease() = default;

/// Empty where it was moved from, and in a child that was forked since.
CoreSet Lease::cores() const noexcept {
  const bool held = impl_ != nullptr && !impl_->locks.empty() && impl_->locks.front();
  return CoreSet::mask(held ? impl_->bits : 0);
}

Result<Lease> Lease::acquire(const std::string& instance, std::size_t total, const CoreSet& cores) {
  if (total == 0 || total > CoreSet::kMaxCores)
    return error(Code::kInvalidArgument, "a lease of a device with {} cores; there are 1 to {}",
                 total, CoreSet::kMaxCores);
  CORELANE_TRY(cores.check(total));
  const std::filesystem::path folder = run_directory();
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem)
    return error(Code::kIo,
                 "cannot use the lease folder '{}': {}; set CORELANE_RUN_DIR to a folder that can "
                 "be written",
                 folder.string(), problem.message());
  const bool all = cores.kind() == CoreSet::Kind::kPlatform;
  const std::size_t wanted = all ? total : cores.count();
  auto impl = std::make_unique<Impl>();
  std::string holders;
  CORELANE_ASSIGN(const UnsharedFd searching,
                  lock_search(folder / (file_stem(instance) + ".lock")));
  // Locks gained before a failure are dropped with `impl`.
  std::size_t looked_at = 0;
  for (std::size_t core = 0; core < total && impl->locks.size() < wanted; ++core) {
    if (((cores.among() >> core) & 1U) == 0) continue;
    ++looked_at;
    const auto path = core_file(folder, instance, core);
    CORELANE_ASSIGN(Attempt attempt, try_core(path));
    if (attempt.fd) {
      impl->bits |= std::uint64_t{1} << core;
      impl->locks.push_back(std::move(attempt.fd));
    } else {
      holders +=
          fmt::format("{}core {} by process {}", holders.empty() ? "" : ", ", core, attempt.holder);
    }
  }
  if (impl->locks.size() < wanted)
    return error(Code::kOutOfCores,
                 "lease of '{}' on {} needs {} cores, {} of the {} looked at are free; held: {}",
                 cores.to_string(), instance, wanted, impl->locks.size(), looked_at, holders);
  return Lease(std::move(impl));
}

/// Nothing is created or locked, so that a look takes no core away.
Result<std::vector<Lease::Holder>> Lease::holders(const std::string& instance, std::size_t total) {
  std::vector<Holder> found;
  for (std::size_t core = 0; core < std::min(total, CoreSet::kMaxCores); ++core) {
    const auto path = core_file(run_directory(), instance, core);
    const UnsharedFd fd = UnsharedFd::open(path.c_str(), O_RDONLY | O_NOFOLLOW, 0);
    if (!fd && errno == ENOENT) continue;  // Nobody has ever had it.
    struct flock lock = whole_file();
    if (!fd || fcntl(fd.get(), F_OFD_GETLK, &lock) != 0)
      return error(Code::kIo, "cannot look at the lease file '{}': {}", path.string(),
                   std::generic_category().message(errno));
    if (lock.l_type != F_UNLCK) found.push_back({core, read_holder(fd.get())});
  }
  return found;
}

}  // namespace corelane::device
