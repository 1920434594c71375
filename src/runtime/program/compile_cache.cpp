#include "runtime/program/compile_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/process/errno_text.h"
#include "base/text_parts.h"
#include "base/trust/environment_switch.h"
#include "base/trust/file_names.h"
#include "base/trust/secure_environment.h"
#include "corelane/base/file.h"
#include "corelane/base/log.h"

namespace corelane::runtime {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kDefaultLimitMb = 2048;
/// A writer that lives renames its file long before: what is older was left by one that died.
constexpr auto kStaleAfter = std::chrono::hours(1);

struct CachedFile {
  fs::path path;
  fs::file_time_type time;
  std::uint64_t size = 0;
};

/// `<key>.rknn` or `<key>.note`, a key being 32 hexadecimal digits.
bool is_entry(std::string_view name) {
  constexpr std::size_t kKey = 32;
  return name.size() == kKey + 5 && (name.ends_with(".rknn") || name.ends_with(".note")) &&
         name.find_first_not_of("0123456789abcdef") == kKey;
}

/// What write_file_atomic() writes before it renames: `.<entry>.<process>.<salt>.<count>.tmp`.
bool is_unfinished_entry(std::string_view name) {
  constexpr std::size_t kEntry = 37;
  return name.starts_with('.') && name.ends_with(".tmp") && is_entry(name.substr(1, kEntry)) &&
         name.substr(1 + kEntry).starts_with('.');
}

/// The entries in the folder; leftovers of writers that died are removed on the way. Whatever has
/// another name, or is not a file, belongs to somebody else.
std::vector<CachedFile> list_entries(const fs::path& folder) {
  std::vector<CachedFile> files;
  for (const std::string& name : file_names(folder)) {
    const bool entry = is_entry(name);
    if (!entry && !is_unfinished_entry(name)) continue;
    const fs::path path = folder / name;
    std::error_code gone;  // Another process may remove files while we look.
    if (!fs::is_regular_file(fs::symlink_status(path, gone))) continue;
    CachedFile file{path, fs::last_write_time(path, gone), fs::file_size(path, gone)};
    if (gone) continue;
    if (entry)
      files.push_back(std::move(file));
    else if (fs::file_time_type::clock::now() - file.time > kStaleAfter)
      fs::remove(file.path, gone);
  }
  return files;
}

/// Why a folder or file cannot be trusted; empty if only this user can have written it.
std::string distrust(const struct stat& info) {
  if (info.st_uid != ::geteuid()) return "it belongs to another user";
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "other users may write to it";
  return {};
}

/// Why programs from this folder cannot be trusted; empty when they can. Where it is missing it is
/// made, for this user alone. A link to it counts where nobody else could have put it there.
std::string distrust(const fs::path& folder) {
  const fs::path above = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  std::error_code ec;
  fs::create_directories(above, ec);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return "it cannot be created: " + errno_text();
  struct stat info {};
  const bool shared = ::stat(above.c_str(), &info) != 0 || (info.st_mode & S_IWOTH) != 0;
  if ((shared ? ::lstat(folder.c_str(), &info) : ::stat(folder.c_str(), &info)) != 0)
    return "it cannot be queried: " + errno_text();
  return S_ISDIR(info.st_mode) ? distrust(info) : "it is not a folder";
}

/// Why an entry cannot be trusted; empty if it can, or is not there.
std::string distrust_entry(const fs::path& file) {
  struct stat info {};
  if (::lstat(file.c_str(), &info) != 0) return {};  // It went meanwhile.
  return S_ISREG(info.st_mode) ? distrust(info) : "it is not a file";
}

/// For this user alone: what was compiled tells what the model is. Others may not write to the
/// folder, so nobody sees a file there that others may write to.
Status write_entry(const fs::path& file, ByteSpan bytes) {
  CORELANE_TRY(write_file_atomic(file, bytes, {file.parent_path()}));
  std::error_code ec;  // Its folder is nobody else's either.
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write, ec);
  return {};
}

}  // namespace

std::optional<CompileCache> CompileCache::from_environment() {
  static constinit EnvironmentSwitch enabled{"CORELANE_CACHE", true};
  if (!enabled.on()) return std::nullopt;
  std::uint64_t limit_mb = kDefaultLimitMb;
  if (const char* text = environment("CORELANE_CACHE_LIMIT_MB")) {
    const auto given = parse_number<std::uint64_t>(text);
    if (given && *given <= (1U << 24))
      limit_mb = *given;
    else
      log::warn("runtime", "CORELANE_CACHE_LIMIT_MB is '{}', not a number of MB; using {}", text,
                kDefaultLimitMb);
  }
  fs::path folder = cache_directory();
  if (!folder.has_filename()) folder = folder.parent_path();  // A final '/'.
  for (const fs::path& each : {folder, folder / "programs"}) {
    const std::string why = distrust(each);
    if (why.empty()) continue;
    log::warn(
        "runtime",
        "compiled programs are not cached: '{}' must be this user's alone, and {}; mend that, "
        "or set CORELANE_CACHE_DIR to a folder of your own",
        each.string(), why);
    return std::nullopt;
  }
  return CompileCache(folder / "programs", limit_mb << 20);
}

std::shared_ptr<const ProgramFile> CompileCache::find(const std::string& key) const {
  const fs::path file = path(key);
  std::error_code ec;
  if (!fs::exists(file, ec)) return nullptr;
  if (const std::string why = distrust_entry(file); !why.empty()) {
    log::warn("runtime", "the compile cache's entry {} is ignored: {}", file.string(), why);
    return nullptr;
  }
  auto program = ProgramFile::open(file, Verify::kEverything);
  if (!program) {
    log::warn("runtime", "the compile cache's entry {} is ignored and will be rewritten: {}",
              file.string(), program.error().to_string());
    return nullptr;
  }
  // Marks the use, for eviction; a read-only cache stays usable.
  fs::last_write_time(file, fs::file_time_type::clock::now(), ec);
  return *program;
}

Status CompileCache::store(const std::string& key, ByteSpan program) const {
  if (program.size() > limit_) {
    log::info("runtime",
              "a program of {} bytes is not cached, the limit is {} (CORELANE_CACHE_LIMIT_MB)",
              program.size(), limit_);
    return {};
  }
  CORELANE_TRY(write_entry(path(key), program));
  evict(path(key));
  return {};
}

void CompileCache::remove(const std::string& key) const {
  std::error_code ec;  // Another process may have been faster.
  fs::remove(path(key), ec);
}

std::string CompileCache::note(const std::string& key) const {
  constexpr std::uintmax_t kMostBytes = 4096;
  const fs::path file = folder_ / (key + ".note");
  std::error_code ec;
  const std::uintmax_t size = fs::file_size(file, ec);
  if (ec || size > kMostBytes || !distrust_entry(file).empty()) return {};
  const auto mapped = MappedFile::open(file);
  return mapped ? std::string(as_string_view(mapped->bytes())) : std::string();
}

Status CompileCache::keep_note(const std::string& key, const std::string& text) const {
  std::error_code ec;
  // The cache holds no entry for a program above its limit, and nothing would ever remove the note.
  if (!fs::exists(path(key), ec)) return {};
  return write_entry(folder_ / (key + ".note"), as_byte_span(text));
}

void CompileCache::evict(const fs::path& keep) const {
  std::vector<CachedFile> files = list_entries(folder_);
  std::uint64_t total = 0;
  for (const CachedFile& f : files) total += f.size;
  if (total <= limit_) return;
  std::sort(files.begin(), files.end(),
            [](const CachedFile& a, const CachedFile& b) { return a.time < b.time; });
  for (const CachedFile& f : files) {
    if (total <= limit_) return;
    if (f.path == keep) continue;
    std::error_code ec;  // Another process may have been faster.
    fs::remove(f.path, ec);
    total -= f.size;
    log::debug("runtime", "evicted {} from the compile cache", f.path.string());
  }
}

}  // namespace corelane::runtime
