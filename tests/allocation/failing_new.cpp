#include "failing_new.h"

#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace corelane::allocation {
namespace {

/// Code of the library, and of the C++ library that it calls.
struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};
std::array<Range, 16> g_ranges;
std::size_t g_range_count = 0;

std::atomic<std::uint64_t> g_below{0};  ///< A number below this one fails; 0: none.
std::atomic<std::uint64_t> g_seed{0};
std::atomic<std::uint64_t> g_asked{0};
std::atomic<std::uint64_t> g_failed{0};
thread_local bool t_shielded = false;

bool is_library(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  const char* const name = slash == nullptr ? path : slash + 1;
  // The program itself has an empty name: it holds templates of the library's headers.
  for (const char* ours : {"libcorelane", "librknnrt", "libQAic", "libstdc++"})
    if (std::strncmp(name, ours, std::strlen(ours)) == 0) return true;
  return *path == '\0';
}

int add_ranges(dl_phdr_info* info, std::size_t, void*) {
  if (!is_library(info->dlpi_name)) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    if (g_range_count < g_ranges.size())
      g_ranges[g_range_count++] = {begin, begin + header.p_memsz};
  }
  return 0;
}

/// SplitMix64: the same numbers for the same seed.
std::uint64_t number(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

bool fails(const void* caller) noexcept {
  const std::uint64_t below = g_below.load(std::memory_order_relaxed);
  if (below == 0 || t_shielded) return false;
  const auto at = reinterpret_cast<std::uintptr_t>(caller);
  const bool ours = std::any_of(g_ranges.begin(), g_ranges.begin() + g_range_count,
                                [&](const Range& r) { return at >= r.begin && at < r.end; });
  if (!ours) return false;
  const std::uint64_t asked = g_asked.fetch_add(1, std::memory_order_relaxed);
  if (number(g_seed.load(std::memory_order_relaxed) + asked) >= below) return false;
  g_failed.fetch_add(1, std::memory_order_relaxed);
  return true;
}

/// Objects; the bytes of tensors are read by nobody before they are written.
constexpr std::size_t kMostFilled = 4096;

void* take(std::size_t size, std::size_t alignment, const void* caller) noexcept {
  if (fails(caller)) return nullptr;
  size = std::max<std::size_t>(size, 1);
  void* const memory =
      alignment <= alignof(std::max_align_t)
          ? std::malloc(size)
          : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  // A pattern, since in zeros a pointer that was never written looks like a null pointer.
  if (memory != nullptr && g_below.load(std::memory_order_relaxed) != 0)
    std::memset(memory, 0xbe, std::min(size, kMostFilled));
  return memory;
}

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void begin_failing(double share, std::uint64_t seed) {
  g_range_count = 0;
  dl_iterate_phdr(add_ranges, nullptr);
  g_seed = number(seed);
  g_below = static_cast<std::uint64_t>(share * 0x1p64);
}

void end_failing() { g_below = 0; }

std::uint64_t failures() { return g_failed; }

Shielded::Shielded() noexcept : before_(std::exchange(t_shielded, true)) {}
Shielded::~Shielded() { t_shielded = before_; }
Exposed::Exposed() noexcept : before_(std::exchange(t_shielded, false)) {}
Exposed::~Exposed() { t_shielded = before_; }

}  // namespace corelane::allocation

using corelane::allocation::or_throw;
using corelane::allocation::take;

// Arrays and sizes call these.
void* operator new(std::size_t size) {
  return or_throw(take(size, 1, __builtin_return_address(0)));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return take(size, 1, __builtin_return_address(0));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return or_throw(take(size, static_cast<std::size_t>(alignment), __builtin_return_address(0)));
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return take(size, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
