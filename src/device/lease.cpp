#include "corelane/device/lease.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <limits>
#include <string_view>
#include <vector>

#include "base/later.h"
#include "base/process/errno_text.h"
#include "base/sync.h"
#include "base/text_parts.h"
#include "base/trust/file_size_signal.h"
#include "corelane/base/printable.h"
#include "device/lease_fds.h"
#include "device/lease_folder.h"

namespace corelane::device {
namespace {

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

/// "left-1" has a mark at its end, which no stem has: else it would be core 1 of "left".
std::string search_file(const std::string& instance) {
  const std::size_t last = instance.find_last_not_of("0123456789");
  const bool like_a_core =
      last != std::string::npos && instance[last] == '-' && last + 1 < instance.size();
  return file_stem(instance) + (like_a_core ? "_.lock" : ".lock");
}

std::string core_file(const std::string& instance, std::size_t core) {
  return fmt::format("{}-{}.lock", file_stem(instance), core);
}

/// What a lock's file says of who has it.
struct Named {
  std::string process = "unknown";
  std::string program;
  std::optional<LeaseFigures> figures;

  std::string to_string() const {
    return program.empty() ? process : fmt::format("{} ({})", process, program);
  }
};

constexpr std::size_t kMostDigits = 10;
constexpr std::size_t kMostName = 32;
constexpr std::size_t kMostPrograms = 128;
/// Where the figures begin: after the first line, whatever it holds, so that both are written
/// apart.
constexpr off_t kFiguresAt = 64;
constexpr std::size_t kMostFigures = std::size_t{4} * 21 + kMostPrograms;

/// "busy-ns jobs waiting programs" and the end of the line. Nothing of it is believed.
std::optional<LeaseFigures> read_figures(int fd) {
  char bytes[kMostFigures] = {};
  const ssize_t n = pread(fd, bytes, sizeof(bytes), kFiguresAt);
  std::string_view text(bytes, n > 0 ? static_cast<std::size_t>(n) : 0);
  const std::size_t end = text.find('\n');
  if (end == text.npos) return std::nullopt;
  text = text.substr(0, end);
  std::uint64_t numbers[3] = {};
  for (std::uint64_t& number : numbers) {
    const std::size_t blank = text.find(' ');
    const auto parsed = parse_number<std::uint64_t>(text.substr(0, blank));
    if (!parsed || blank == text.npos) return std::nullopt;
    number = *parsed;
    text.remove_prefix(blank + 1);
  }
  constexpr std::uint64_t kMostBusy = std::numeric_limits<Duration::rep>::max();
  if (numbers[0] > kMostBusy) return std::nullopt;
  return LeaseFigures{Duration(static_cast<Duration::rep>(numbers[0])), numbers[1], numbers[2],
                      printable(std::string(text.substr(0, kMostPrograms)))};
}

/// Digits, a blank, a name: anything else was not written by this library, and is not shown. The
/// process may have ended, and its number be another's by now.
Named read_named(int fd) {
  char bytes[kMostDigits + 1 + kMostName] = {};
  const ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
  std::string_view text(bytes, n > 0 ? static_cast<std::size_t>(n) : 0);
  text = text.substr(0, text.find('\n'));
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  Named named;
  if (digits == 0 || digits > kMostDigits) return named;
  named.process = text.substr(0, digits);
  if (digits < text.size() && text[digits] == ' ')
    named.program = printable(std::string(text.substr(digits + 1)));
  named.figures = read_figures(fd);
  return named;
}

Status write_named(int fd) {
  const std::string self = fmt::format("{} {}\n", getpid(), program_invocation_short_name);
  const NoFileSizeSignal failure_instead;
  if (ftruncate(fd, 0) == 0 &&
      pwrite(fd, self.data(), self.size(), 0) == static_cast<ssize_t>(self.size()))
    return {};
  return error(Code::kIo, "cannot write the process that holds it into the lock file: {}",
               errno_text());
}

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

Status file_failure(const LeaseFolder& folder, const std::string& name, std::string_view why) {
  return error(Code::kIo,
               "cannot use the lease file '{}': {}; remove it, or set CORELANE_RUN_DIR to another "
               "folder",
               (folder.path / name).string(), why);
}

/// Opened before it is made: the kernel refuses O_CREAT on the file of another user in a shared
/// folder (fs.protected_regular).
UnsharedFd open_or_make(const LeaseFolder& folder, const std::string& name) {
  // O_NONBLOCK: a pipe in its place must not hang.
  constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  for (int attempt = 0; attempt < 3; ++attempt) {
    UnsharedFd fd = UnsharedFd::open(folder.fd.get(), name.c_str(), kFlags, 0);
    if (fd || errno != ENOENT) return fd;
    fd = UnsharedFd::open(folder.fd.get(), name.c_str(), kFlags | O_CREAT | O_EXCL, 0600);
    // Every user who may write to the folder may take a core of the device.
    if (fd && folder.shared) fchmod(fd.get(), 0666);
    if (fd || errno != EEXIST) return fd;
  }
  return {};
}

/// A plain file with one name: of a second name, what is written here would change another file.
Result<UnsharedFd> open_lock_file(const LeaseFolder& folder, const std::string& name) {
  UnsharedFd fd = open_or_make(folder, name);
  if (!fd) return error(file_failure(folder, name, errno_text()));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_nlink > 1)
    return error(file_failure(folder, name, "it is not a plain file with one name"));
  return fd;
}

struct Attempt {
  UnsharedFd fd;  ///< Holds the lock when valid.
  Named holder;   ///< Who has it otherwise.
};

/// Locks one file. The lock belongs to the open file description, so it also stands between
/// two leases of one process, and the kernel drops it when the last descriptor is closed. The file
/// stays: removing it would let two processes lock two files of one name.
Result<Attempt> try_lock(const LeaseFolder& folder, const std::string& name) {
  CORELANE_ASSIGN(UnsharedFd fd, open_lock_file(folder, name));
  struct flock lock = whole_file();
  if (fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) {
    // POSIX allows both codes for a lock that another holds.
    if (errno != EAGAIN && errno != EACCES) return error(file_failure(folder, name, errno_text()));
    return Attempt{UnsharedFd(), read_named(fd.get())};
  }
  if (const Status written = write_named(fd.get()); !written.ok())
    return error(file_failure(folder, name, written.message()));
  return Attempt{std::move(fd), {}};
}

/// Waits on the clock alone: nobody notifies.
void pause(Clock& clock, TimePoint until) {
  Mutex mutex{LockRank::kLeaseSearch};
  std::condition_variable never;
  MutexLock lock(mutex);
  while (clock.wait_until(lock.native(), never, until)) {
  }
}

/// Held while the cores of one lease are looked for: of two that ask for the same free cores at
/// once, one gets them. Its holder works for some microseconds, or was stopped: hence the
/// limit. In a shared folder, another user's new file cannot be opened for as long as its mode is
/// not yet set, which ends as soon.
Result<UnsharedFd> lock_search(const LeaseFolder& folder, const std::string& instance,
                               const LeaseWait& wait) {
  constexpr Duration kStep = std::chrono::milliseconds(1);
  const TimePoint start = wait.clock->now();
  const TimePoint until = later(start, wait.limit);
  for (;;) {
    auto attempt = try_lock(folder, search_file(instance));
    if (attempt && attempt->fd) return std::move(attempt->fd);
    if (!attempt && !folder.shared) return error(attempt.error());
    const TimePoint now = wait.clock->now();
    if (now >= until && !attempt) return error(attempt.error());
    if (now >= until)
      return error(Code::kBusy,
                   "process {} has been looking for cores of {} for {} ms; if it is stopped, let "
                   "it go on (kill -CONT) or end it, then try again",
                   attempt->holder.to_string(), instance, (now - start) / kStep);
    pause(*wait.clock, std::min(until, now + kStep));
  }
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

Status Lease::publish(std::size_t core, const LeaseFigures& figures) const {
  const bool held = core < CoreSet::kMaxCores && ((cores().bits() >> core) & 1U) != 0;
  if (!held)
    return error(Code::kInvalidArgument, "core {} is not of this lease of '{}'", core,
                 cores().to_string());
  // The locks are in the order of the cores.
  const std::uint64_t before = impl_->bits & ((std::uint64_t{1} << core) - 1);
  const UnsharedFd& fd = impl_->locks[static_cast<std::size_t>(std::popcount(before))];
  std::string programs = figures.programs.substr(0, kMostPrograms);
  std::ranges::replace(programs, '\n', ' ');
  const std::string line =
      fmt::format("{} {} {} {}\n", figures.busy.count(), figures.jobs, figures.waiting, programs);
  const NoFileSizeSignal failure_instead;
  if (pwrite(fd.get(), line.data(), line.size(), kFiguresAt) == static_cast<ssize_t>(line.size()))
    return {};
  return error(Code::kIo, "cannot write the figures of core {}: {}", core, errno_text());
}

Result<Lease> Lease::acquire(const std::string& instance, std::size_t total, const CoreSet& cores,
                             const LeaseWait& wait) {
  if (total == 0 || total > CoreSet::kMaxCores)
    return error(Code::kInvalidArgument, "a lease of a device with {} cores; there are 1 to {}",
                 total, CoreSet::kMaxCores);
  CORELANE_TRY(cores.check(total));
  CORELANE_ASSIGN(const LeaseFolder folder, make_lease_folder());
  const bool all = cores.kind() == CoreSet::Kind::kPlatform;
  const std::size_t wanted = all ? total : cores.count();
  auto impl = std::make_unique<Impl>();
  std::string holders;
  CORELANE_ASSIGN(const UnsharedFd searching, lock_search(folder, instance, wait));
  // Locks gained before a failure are dropped with `impl`.
  std::size_t looked_at = 0;
  for (std::size_t core = 0; core < total && impl->locks.size() < wanted; ++core) {
    if (((cores.among() >> core) & 1U) == 0) continue;
    ++looked_at;
    CORELANE_ASSIGN(Attempt attempt, try_lock(folder, core_file(instance, core)));
    if (attempt.fd) {
      impl->bits |= std::uint64_t{1} << core;
      impl->locks.push_back(std::move(attempt.fd));
    } else {
      holders += fmt::format("{}core {} by process {}", holders.empty() ? "" : ", ", core,
                             attempt.holder.to_string());
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
  CORELANE_ASSIGN(const auto folder, find_lease_folder());
  if (!folder) return found;  // Nobody has ever had a lease.
  for (std::size_t core = 0; core < std::min(total, CoreSet::kMaxCores); ++core) {
    const std::string name = core_file(instance, core);
    const UnsharedFd fd = UnsharedFd::open(folder->fd.get(), name.c_str(),
                                           O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (!fd && errno == ENOENT) continue;  // Nobody has ever had it.
    struct flock lock = whole_file();
    if (!fd || fcntl(fd.get(), F_OFD_GETLK, &lock) != 0)
      return error(file_failure(*folder, name, errno_text()));
    if (lock.l_type == F_UNLCK) continue;
    const Named named = read_named(fd.get());
    found.push_back({core, named.process, named.program, named.figures});
  }
  return found;
}

}  // namespace corelane::device
