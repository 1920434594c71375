#include "corelane/base/file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <optional>
#include <random>
#include <system_error>

#include "base/leaked.h"
#include "base/process/errno_text.h"
#include "base/process/unique_fd.h"
#include "base/trust/file_size_signal.h"
#include "base/trust/open_beneath.h"
#include "base/trust/secure_environment.h"
#include "base/trust/source_mode.h"

namespace corelane {

namespace fs = std::filesystem;

namespace {

/// O_NONBLOCK: opening a FIFO that nobody writes to must fail, not hang.
constexpr int kRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

Status os_failure(std::string_view what, const fs::path& path, int error_number,
                  std::source_location where = std::source_location::current()) {
  const bool missing = error_number == ENOENT || error_number == ENOTDIR;
  const Code other = error_number == ENOMEM ? Code::kOutOfMemory : Code::kIo;
  return {missing ? Code::kNotFound : other,
          fmt::format("'{}': {}: {}", path.string(), what, errno_text(error_number)), where};
}

FileIdentity identity_of(const struct stat& info) {
  const auto nanoseconds = [](const timespec& t) {
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
  };
  return {info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size),
          nanoseconds(info.st_mtim), nanoseconds(info.st_ctim)};
}

Status write_all(int fd, const fs::path& path, ByteSpan bytes) {
  const NoFileSizeSignal failure_instead;
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_failure("cannot write", path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

/// A name no other thread, process or container that shares the folder uses. O_EXCL decides; the
/// random part keeps the tries short.
fs::path temporary_name(const fs::path& path) {
  static std::atomic<std::uint64_t> count{0};
  static const std::uint32_t salt = std::random_device{}();
  constexpr std::size_t kMostOfName = 180;  // A name has at most 255 bytes.
  return path.parent_path() / fmt::format(".{}.{}.{:08x}.{}.tmp",
                                          path.filename().string().substr(0, kMostOfName),
                                          ::getpid(), salt, count.fetch_add(1));
}

/// Where a write to `path` ends: symbolic links are followed, also one to a file not yet there.
Result<fs::path> resolve_links(fs::path path) {
  constexpr int kMostLinks = 40;  // As the kernel.
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code ec;
    const fs::path next = fs::read_symlink(path, ec);
    if (ec) return path;  // No link, or nothing there.
    path = path.parent_path() / next;
  }
  return error(os_failure("cannot follow the link", path, ELOOP));
}

/// For what must not be replaced: devices, pipes.
Status write_in_place(const fs::path& path, ByteSpan bytes) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return os_failure("cannot open", path, errno);
  CORELANE_TRY(write_all(fd.get(), path, bytes));
  if (::close(fd.release()) != 0) return os_failure("cannot write", path, errno);
  return {};
}

/// Writes beside `path` and renames. `mode`: the permissions of the file it replaces; `widest`:
/// what the new one may have.
Status replace_file(const fs::path& path, std::optional<mode_t> mode, mode_t widest,
                    ByteSpan bytes) {
  fs::path temporary;
  int opened = -1;
  do {
    temporary = temporary_name(path);
    // What replaces a private file is never open to others, not even while it is written.
    opened = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                    (mode ? 0600 : 0666) & widest);
  } while (opened < 0 && errno == EEXIST);
  UniqueFd fd(opened);
  if (!fd) return os_failure("cannot create a temporary file beside it", path, errno);
  Status status = write_all(fd.get(), temporary, bytes);
  if (status.ok() && mode && ::fchmod(fd.get(), *mode & widest) != 0)
    status = os_failure("cannot set the permissions", temporary, errno);
  // close() reports what a full network file system could not write.
  if (::close(fd.release()) != 0 && status.ok())
    status = os_failure("cannot write", temporary, errno);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = os_failure("cannot replace it", path, errno);
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

}  // namespace

Result<MappedFile> MappedFile::open(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), kRead));
  if (!fd) return error(os_failure("cannot open", path, errno));
  return map(fd.get(), path);
}

Result<MappedFile> MappedFile::open_beneath(const fs::path& folder, const fs::path& relative) {
  const fs::path path = folder / relative;
  const UniqueFd root(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return error(os_failure("cannot open", folder, errno));
  const UniqueFd fd(corelane::open_beneath(root.get(), relative, kRead));
  // ENOTDIR: a link where a folder is needed, where the kernel lacks openat2().
  if (!fd && (errno == ELOOP || errno == EXDEV || errno == ENOTDIR)) {
    return error(Code::kInvalidArgument,
                 "'{}' leads through a link, or out of the folder '{}'; name the file itself",
                 path.string(), folder.string());
  }
  if (!fd) return error(os_failure("cannot open", path, errno));
  return map(fd.get(), path);
}

Result<MappedFile> MappedFile::map(int fd, const fs::path& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return error(os_failure("cannot query", path, errno));
  if (!S_ISREG(info.st_mode)) {
    return error(Code::kMalformed, "'{}' is {}; a regular file is needed", path.string(),
                 S_ISDIR(info.st_mode) ? "a directory" : "not a regular file");
  }
  MappedFile file;
  file.identity_ = identity_of(info);
  file.names_ = info.st_nlink;
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return file;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return error(os_failure("cannot map", path, errno));
  file.data_ = {static_cast<const std::byte*>(data), Unmap{size}};
  return file;
}

void MappedFile::Unmap::operator()(const std::byte* data) const noexcept {
  ::munmap(const_cast<std::byte*>(data), size);
}

Result<FileReader> FileReader::reopen(const MappedFile& mapped, const fs::path& path) {
  FileReader file(::open(path.c_str(), kRead));
  if (file.descriptor_ < 0) return error(os_failure("cannot open", path, errno));
  struct stat info {};
  if (::fstat(file.descriptor_, &info) != 0) return error(os_failure("cannot query", path, errno));
  if (identity_of(info) != mapped.identity())
    return error(Code::kCorrupted, "'{}' was replaced or written to while it is open",
                 path.string());
  return file;
}

FileReader::FileReader(FileReader&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileReader::~FileReader() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status FileReader::read(std::uint64_t offset, MutableByteSpan to) const {
  while (!to.empty()) {
    const ssize_t n = ::pread(descriptor_, to.data(), to.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return {Code::kIo, fmt::format("cannot read: {}", errno_text())};
    if (n == 0)
      return {Code::kCorrupted,
              fmt::format("the file ends at byte {}: it became shorter while it is open", offset)};
    offset += static_cast<std::uint64_t>(n);
    to = to.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<ByteVector> read_file(const fs::path& path, std::size_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return error(os_failure("cannot open", path, errno));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return error(os_failure("cannot query", path, errno));
  if (S_ISDIR(info.st_mode))
    return error(Code::kMalformed, "'{}' is a directory; a file is needed", path.string());
  const auto too_long = [&] {
    return error(Code::kMalformed, "'{}' is longer than the allowed {} bytes", path.string(),
                 limit);
  };
  const auto expected = static_cast<std::size_t>(S_ISREG(info.st_mode) ? info.st_size : 0);
  if (expected > limit) return too_long();
  // The size is a hint only (pipes and files of the kernel report 0): read until the end.
  constexpr std::size_t kStep = std::size_t{64} << 10;
  ByteVector bytes(expected + 1);
  std::size_t used = 0;
  for (;;) {
    if (used == bytes.size()) bytes.resize(bytes.size() + std::max(kStep, bytes.size() / 2));
    const ssize_t n = ::read(fd.get(), bytes.data() + used, bytes.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error(os_failure("cannot read", path, errno));
    if (n == 0) break;
    used += static_cast<std::size_t>(n);
    if (used > limit) return too_long();
  }
  bytes.resize(used);
  return bytes;
}

Status write_file_atomic(const fs::path& path, ByteSpan bytes,
                         const std::vector<fs::path>& no_wider_than) {
  if (!path.has_filename()) {
    return error(Code::kInvalidArgument, "'{}' names no file; give folder and file name",
                 path.string());
  }
  struct stat before {};
  const bool exists = ::stat(path.c_str(), &before) == 0;
  if (exists && S_ISDIR(before.st_mode)) return os_failure("cannot replace it", path, EISDIR);
  if (exists && !S_ISREG(before.st_mode)) return write_in_place(path, bytes);
  CORELANE_ASSIGN(const fs::path target, resolve_links(path));
  if (target.has_parent_path()) {
    std::error_code made;
    fs::create_directories(target.parent_path(), made);
    if (made) {
      return error(Code::kIo, "'{}': cannot create the folder: {}", target.parent_path().string(),
                   made.message());
    }
  }
  return replace_file(target, exists ? std::optional(before.st_mode & 0777) : std::nullopt,
                      widest_mode(no_wider_than, target.parent_path()), bytes);
}

fs::path own_directory() {
  // Asked once: a library that was loaded by a relative path is found only while the process is
  // in the folder it was loaded from.
  static Leaked<const fs::path> directory([] {
    Dl_info info{};
    link_map* map = nullptr;
    std::error_code ignored;
    fs::path file;
    const void* inside = reinterpret_cast<const void*>(&own_directory);
    if (::dladdr1(inside, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0 &&
        map != nullptr && map->l_name != nullptr && *map->l_name != '\0') {
      file = fs::canonical(map->l_name, ignored);
    }
    // The program itself has no name in the link map.
    if (file.empty()) file = fs::read_symlink("/proc/self/exe", ignored);
    return file.parent_path();
  }());
  return *directory;
}

fs::path cache_directory() {
  if (const auto v = environment_text("CORELANE_CACHE_DIR"); !v.empty()) return v;
  if (const auto v = environment_text("XDG_CACHE_HOME"); !v.empty())
    return fs::path(v) / "corelane";
  if (const auto v = environment_text("HOME"); !v.empty())
    return fs::path(v) / ".cache" / "corelane";
  std::error_code failed;
  fs::path temporary = fs::temp_directory_path(failed);
  if (failed) temporary = "/tmp";
  return temporary / fmt::format("corelane-{}", ::getuid());
}

}  // namespace corelane
