#include "runtime/compile_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <vector>

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

/// What lies in the folder; leftovers of writers that died are removed on the way.
std::vector<CachedFile> list_entries(const fs::path& folder) {
  std::vector<CachedFile> files;
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
    std::error_code gone;  // Another process may remove files while we look.
    CachedFile file{it->path(), it->last_write_time(gone), it->file_size(gone)};
    if (gone || !it->is_regular_file(gone)) continue;
    if (file.path.extension() == ".rknn") {
      files.push_back(std::move(file));
    } else if (fs::file_time_type::clock::now() - file.time > kStaleAfter) {
      fs::remove(file.path, gone);
    }
  }
  return files;
}

}  // namespace

std::optional<CompileCache> CompileCache::from_environment() {
  const char* enabled = std::getenv("CORELANE_CACHE");
  if (enabled != nullptr && std::string_view(enabled) == "0") return std::nullopt;
  std::uint64_t limit_mb = kDefaultLimitMb;
  if (const char* text = std::getenv("CORELANE_CACHE_LIMIT_MB")) {
    const std::string_view digits(text);
    const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), limit_mb);
    if (ec != std::errc() || end != digits.data() + digits.size() || limit_mb > (1U << 24)) {
      log::warn("runtime", "CORELANE_CACHE_LIMIT_MB is '{}', not a number of MB; using {}", digits,
                kDefaultLimitMb);
      limit_mb = kDefaultLimitMb;
    }
  }
  return CompileCache(cache_directory() / "programs", limit_mb << 20);
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
  CORELANE_RETURN_IF_ERROR(write_file_atomic(path(key), program));
  evict(path(key));
  return {};
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
