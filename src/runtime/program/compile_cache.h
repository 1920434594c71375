/// The compile cache: whole program files on disk, so that an ONNX model is compiled once.
///
/// Folder: `programs` below cache_directory(). `CORELANE_CACHE=0` switches it off;
/// `CORELANE_CACHE_LIMIT_MB` bounds its size (default 2048), the entries least recently used go
/// first. Files in the folder that have no name of an entry are left alone. Folders and entries are
/// used only when they are this user's and nobody else may write to them; they are made with the
/// modes 0700 and 0600. Entries are written under another name and renamed, so processes never see
/// half of one; each carries the program file's own checksums. A cache that fails costs time, never
/// the load.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/device/device.h"
#include "corelane/program/program_file.h"
#include "corelane/runtime/program.h"

namespace corelane::onnx {
class ExternalData;
}

namespace corelane::runtime {

/// Any thread, any process.
class CompileCache {
 public:
  CompileCache(std::filesystem::path folder, std::uint64_t limit_bytes)
      : folder_(std::move(folder)), limit_(limit_bytes) {}
  /// As the environment says; nullopt when it is switched off, or the folder is not to be trusted
  /// (which is logged).
  static std::optional<CompileCache> from_environment();

  /// `key`: 32 hexadecimal digits, as of compile_key().
  /// The entry, all checksums verified; null when there is none or it is damaged (which is logged;
  /// the next store() replaces it).
  std::shared_ptr<const ProgramFile> find(const std::string& key) const;
  /// Writes the entry, then evicts the oldest ones above the limit. Not stored, and ok, when it
  /// alone is larger than the limit.
  Status store(const std::string& key, ByteSpan program) const;
  /// Removes the entry, where there is one.
  void remove(const std::string& key) const;
  /// A line that was kept beside an entry, such as which engine is faster; empty where there is
  /// none. It may be evicted like an entry.
  std::string note(const std::string& key) const;
  Status keep_note(const std::string& key, const std::string& text) const;
  std::filesystem::path path(const std::string& key) const { return folder_ / (key + ".rknn"); }

 private:
  void evict(const std::filesystem::path& keep) const;

  std::filesystem::path folder_;
  std::uint64_t limit_;
};

/// The key of a model: content of the bytes and of its external data, every option of import and
/// preparation, version of this library, engine and instruction set of the device. An error when a
/// key cannot be made (external data missing, outside of the model's folders, or reached where
/// links are refused): then the import speaks, the cache is not used. `external`: what the import
/// will read, so that the key is of the same bytes.
Result<std::string> compile_key(ByteSpan model, onnx::ExternalData& external,
                                const LoadOptions& options, const device::DeviceInfo& info);

}  // namespace corelane::runtime
