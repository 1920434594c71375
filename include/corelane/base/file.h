/// Files: mapped for reading, read whole, written atomically. Errors are kNotFound or kIo and name
/// the path and the reason of the operating system.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/status.h"

namespace corelane {

/// A read-only private mapping of a regular file. Move-only; the bytes live as long as it does.
/// Immutable after open, so it may be read from any thread.
class CORELANE_API MappedFile {
 public:
  /// kNotFound when the file does not exist, kIo when it cannot be read, kMalformed when it is a
  /// directory or not a regular file. An empty file gives an empty span.
  static Result<MappedFile> open(const std::filesystem::path& path);

  /// Takes the mapping; `other` is empty afterwards.
  MappedFile(MappedFile&& other) noexcept;
  /// Unmaps what was mapped and takes the mapping of `other`.
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  /// The bytes of the file; valid as long as this object.
  ByteSpan bytes() const noexcept { return {data_, size_}; }
  /// The path that open() was given.
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  MappedFile() = default;
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The whole file. At most `limit` bytes, otherwise kMalformed.
CORELANE_API Result<ByteVector> read_file(const std::filesystem::path& path,
                                          std::size_t limit = SIZE_MAX);

/// Writes a temporary file in the same folder and renames it, so readers in other processes see
/// the old file or the whole new one; it keeps the old one's permissions. Creates missing parent
/// folders. A symbolic link stays and the file it leads to is replaced. A device or a pipe
/// is not replaced either: the bytes are written to it, which waits for a pipe's reader. A
/// directory is kIo.
CORELANE_API Status write_file_atomic(const std::filesystem::path& path, ByteSpan bytes);

/// The folder of the shared library or program that contains this code.
CORELANE_API std::filesystem::path own_directory();

/// `CORELANE_CACHE_DIR`, else `$XDG_CACHE_HOME/corelane`, else `~/.cache/corelane`, else a folder
/// below the temporary directory. Not created.
CORELANE_API std::filesystem::path cache_directory();

}  // namespace corelane
