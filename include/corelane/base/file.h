/// Files: mapped for reading, read whole, written atomically. Errors are kNotFound, kIo, or
/// kOutOfMemory where the system has no memory, and name the path and the reason of the operating
/// system.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/status.h"

namespace corelane {

/// How files of one kind begin that a driver takes as they are.
struct FileMagic {
  std::string kind;        ///< Image::kind of such a file.
  std::string bytes;       ///< The bytes of the file at `offset`; not empty.
  std::size_t offset = 0;  ///< Bytes from the beginning of the file.
  bool encrypted = false;  ///< Recognised only to report that it cannot be read.
  /// Bytes of the header, of which the last 16 are the version of the format and the bytes that
  /// follow, both little-endian. A file that cannot have such a header is damaged. 0: not looked
  /// at.
  std::size_t header = 0;
};

/// Which file, and in which state, was opened: equal for two openings of one file that nobody wrote
/// to in between.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified = 0;  ///< Nanoseconds; of the content.
  std::int64_t changed = 0;   ///< Nanoseconds; of the content or of what the system knows of it.
  auto operator<=>(const FileIdentity&) const = default;
};

/// A read-only private mapping of a regular file. Move-only; the bytes live as long as it does.
/// Immutable after open, so it may be read from any thread.
class CORELANE_API MappedFile {
 public:
  /// kNotFound when the file does not exist, kIo when it cannot be read, kMalformed when it is a
  /// directory or not a regular file. An empty file gives an empty span.
  static Result<MappedFile> open(const std::filesystem::path& path);
  /// The same for a file beneath a folder, `relative` being a path of plain names: found and opened
  /// in one step that follows no link, so that nobody can put another file in its place between a
  /// check and the opening. kInvalidArgument when a part of the path is a link, or "..".
  static Result<MappedFile> open_beneath(const std::filesystem::path& folder,
                                         const std::filesystem::path& relative);

  /// The bytes of the file, valid as long as this object; none where it was moved from.
  ByteSpan bytes() const noexcept {
    return {data_.get(), data_ ? data_.get_deleter().size : std::size_t{0}};
  }
  /// As it was when the file was opened.
  const FileIdentity& identity() const noexcept { return identity_; }
  /// How many names (hard links) the file had then.
  std::uint64_t names() const noexcept { return names_; }

 private:
  struct Unmap {
    std::size_t size;  ///< Bytes.
    /// Unmaps what open() mapped.
    void operator()(const std::byte* data) const noexcept;
  };
  /// Maps an open file, which the caller closes; `path` is for messages.
  static Result<MappedFile> map(int fd, const std::filesystem::path& path);
  std::unique_ptr<const std::byte[], Unmap> data_;
  FileIdentity identity_;
  std::uint64_t names_ = 0;
};

/// A second opening of a mapped file, for large copies: reading them takes less than touching their
/// pages. Move-only. Any thread.
class CORELANE_API FileReader {
 public:
  /// Opens the file `path`, which `mapped` is of. kNotFound, kIo; kCorrupted when another file has
  /// taken its place or somebody has written to it since it was mapped.
  static Result<FileReader> reopen(const MappedFile& mapped, const std::filesystem::path& path);
  /// Takes over the file that `other` has open.
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&&) = delete;
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;
  ~FileReader();

  /// Fills `to` from `offset` on. kIo when the file cannot be read, kCorrupted when it ends before.
  Status read(std::uint64_t offset, MutableByteSpan to) const;

 private:
  explicit FileReader(int descriptor) noexcept : descriptor_(descriptor) {}
  int descriptor_;
};

/// The whole file. At most `limit` bytes, otherwise kMalformed.
CORELANE_API Result<ByteVector> read_file(const std::filesystem::path& path,
                                          std::size_t limit = SIZE_MAX);

/// Writes a temporary file in the same folder and renames it, so readers in other processes see
/// the old file or the whole new one; it keeps the old one's permissions. Creates missing parent
/// folders. A symbolic link stays and the file it leads to is replaced. A device or a pipe
/// is not replaced either: the bytes are written to it, which waits for a pipe's reader. A
/// directory is kIo. Nobody may read the file who may not read all of `no_wider_than`, the files
/// that it was made of: it has at most their permissions.
CORELANE_API Status write_file_atomic(const std::filesystem::path& path, ByteSpan bytes,
                                      const std::vector<std::filesystem::path>& no_wider_than = {});

/// The folder of the shared library or program that contains this code.
CORELANE_API std::filesystem::path own_directory();

/// `CORELANE_CACHE_DIR`, else `$XDG_CACHE_HOME/corelane`, else `~/.cache/corelane`, else a folder
/// below the temporary directory. Not created.
CORELANE_API std::filesystem::path cache_directory();

}  // namespace corelane
