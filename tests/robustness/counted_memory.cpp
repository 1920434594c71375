#include "counted_memory.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROBUSTNESS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ROBUSTNESS_SANITIZED 1
#endif
#endif

namespace corelane::robustness {

namespace {

std::atomic<std::size_t> g_live{0};
std::atomic<std::size_t> g_peak{0};

}  // namespace

#ifndef ROBUSTNESS_SANITIZED

namespace {

void* counted(void* memory) noexcept {
  if (memory == nullptr) return nullptr;
  const std::size_t live = g_live += ::malloc_usable_size(memory);
  std::size_t peak = g_peak.load(std::memory_order_relaxed);
  while (live > peak && !g_peak.compare_exchange_weak(peak, live)) {
  }
  return memory;
}

void release(void* memory) noexcept {
  if (memory == nullptr) return;
  g_live -= ::malloc_usable_size(memory);
  std::free(memory);
}

void* aligned(std::size_t size, std::size_t alignment) noexcept {
  return counted(std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment));
}

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

bool memory_is_counted() noexcept { return true; }

#else

bool memory_is_counted() noexcept { return false; }

#endif

PeakMemory::PeakMemory() noexcept : level_(g_live) { g_peak = level_; }

std::size_t PeakMemory::bytes() const noexcept {
  const std::size_t peak = g_peak;
  return peak - std::min(peak, level_);
}

}  // namespace corelane::robustness

#ifndef ROBUSTNESS_SANITIZED

using corelane::robustness::aligned;
using corelane::robustness::counted;
using corelane::robustness::or_throw;
using corelane::robustness::release;

// Arrays and the other forms call these.
void* operator new(std::size_t size) {
  return or_throw(counted(std::malloc(std::max<std::size_t>(size, 1))));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return counted(std::malloc(std::max<std::size_t>(size, 1)));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return or_throw(aligned(size, static_cast<std::size_t>(alignment)));
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return aligned(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }

#endif
