#include "runtime/program/compile_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/text_parts.h"
#include "corelane/base/file.h"
#include "corelane/base/log.h"

namespace corelane::runtime {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kDefaultLimitMb = 2048;
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
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
    const std::string name = it->path().filename().string();
    const bool entry = is_entry(name);
    if (!entry && !is_unfinished_entry(name)) continue;
    std::error_code gone;  // Another process may remove files while we look.
    if (!fs::is_regular_file(it->symlink_status(gone))) continue;
    CachedFile file{it->path(), it->last_write_time(gone), it->file_size(gone)};
    if (gone) continue;
    if (entry)
      files.push_back(std::move(file));
    else if (fs::file_time_type::clock::now() - file.time > kStaleAfter)
      fs::remove(file.path, gone);
  }
  return files;
}

/// Why programs from this folder cannot be trusted; empty when they can. Directly below a folder
/// that everybody may write to (/tmp, when there is no home folder) another user could have made it
/// first; there it is created for this user alone.
std::string distrust(const fs::path& folder) {
  struct stat info {};
  const fs::path above = folder.parent_path();
  if (::stat(above.empty() ? "." : above.c_str(), &info) != 0) return {};  // Made on the first use.
  if ((info.st_mode & S_IWOTH) == 0) return {};
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return "it cannot be created: " + std::generic_category().message(errno);
  if (::lstat(folder.c_str(), &info) != 0)
    return "it cannot be queried: " + std::generic_category().message(errno);
  if (!S_ISDIR(info.st_mode)) return "it is not a folder";
  if (info.st_uid != ::geteuid()) return "it belongs to another user";
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "other users may write to it";
  return {};
}

}  // namespace

std::optional<CompileCache> CompileCache::from_environment() {
  const char* enabled = std::getenv("CORELANE_CACHE");
  if (enabled != nullptr && std::string_view(enabled) == "0") return std::nullopt;
  std::uint64_t limit_mb = kDefaultLimitMb;
  if (const char* text = std::getenv("CORELANE_CACHE_LIMIT_MB")) {
    const auto given = parse_number<std::uint64_t>(text);
    if (given && *given <= (1U << 24))
      limit_mb = *given;
    else
      log::warn("runtime", "CORELANE_CACHE_LIMIT_MB is '{}', not a number of MB; using {}", text,
                kDefaultLimitMb);
  }
  fs::path folder = cache_directory();
  if (!folder.has_filename()) folder = folder.parent_path();  // A final '/'.
  if (const std::string why = distrust(folder); !why.empty()) {
    log::warn("runtime",
              "compiled programs are not cached: '{}' lies where everybody may write and {}; set "
              "CORELANE_CACHE_DIR to a folder of your own",
              folder.string(), why);
    return std::nullopt;
  }
  return CompileCache(folder / "programs", limit_mb << 20);
}

std::shared_ptr<const ProgramFile> CompileCache::find(const std::string& key) const {
  const fs::path file = path(key);
  std::error_code ec;
  if (!fs::exists(file, ec)) return nullptr;
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
  CORELANE_TRY(write_file_atomic(path(key), program));
  evict(path(key));
  return {};
}

std::string CompileCache::note(const std::string& key) const {
  constexpr std::uintmax_t kMostBytes = 4096;
  const fs::path file = folder_ / (key + ".note");
  std::error_code ec;
  const std::uintmax_t size = fs::file_size(file, ec);
  if (ec || size > kMostBytes) return {};
  const auto mapped = MappedFile::open(file);
  return mapped ? std::string(as_string_view(mapped->bytes())) : std::string();
}

Status CompileCache::keep_note(const std::string& key, const std::string& text) const {
  return write_file_atomic(folder_ / (key + ".note"), as_byte_span(text));
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
