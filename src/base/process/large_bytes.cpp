#include "corelane/base/large_bytes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <new>

namespace corelane::detail {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
/// Vector instructions read constants, each at a multiple of 64.
constexpr std::align_val_t kAlignment{64};

std::size_t rounded_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

std::size_t page() {
  static const auto kSize = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return kSize;
}

/// True for what map() gives; memory of the heap with such an address is not used.
bool is_mapped(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % kHugePage == 0;
}

/// True where most pages are there, since earlier owners have touched them.
bool has_pages(std::byte* memory, std::size_t size) {
  std::array<unsigned char, 256> pages;
  const std::size_t step = pages.size() * page();
  const std::size_t before = reinterpret_cast<std::uintptr_t>(memory) % page();
  std::byte* const first = memory - before;
  std::size_t all = 0;
  std::size_t there = 0;
  for (std::size_t at = 0; at < before + size; at += step) {
    const std::size_t bytes = std::min(step, before + size - at);
    if (::mincore(first + at, bytes, pages.data()) != 0) return false;
    const std::size_t count = rounded_up(bytes, page()) / page();
    all += count;
    for (std::size_t i = 0; i < count; ++i) there += pages[i] & 1U;
  }
  return there > all / 2;
}

/// Memory of the heap that has pages; null where it would need new ones.
void* take_used(std::size_t size) {
  // The heap maps larger pieces, too.
  constexpr std::size_t kMost = std::size_t{32} << 20;
  if (size > kMost) return nullptr;
  void* const heap = ::operator new(size, kAlignment);
  if (!is_mapped(heap) && has_pages(static_cast<std::byte*>(heap), size)) return heap;
  ::operator delete(heap, kAlignment);
  return nullptr;
}

/// Only then the heap may have pages for another one. A failed try of it would change when the heap
/// gives memory back.
std::atomic<bool> has_given{false};

/// Whole pages from a multiple of a huge page on.
std::byte* map(std::size_t size) {
  const std::size_t mapped = size + kHugePage;
  void* const memory =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto* const first = static_cast<std::byte*>(memory);
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  const std::size_t before = rounded_up(address, kHugePage) - address;
  if (before > 0) ::munmap(first, before);
  ::munmap(first + before + size, mapped - before - size);
  return first + before;
}

}  // namespace

void* take_large(std::size_t size) {
  if (size > PTRDIFF_MAX - 2 * kHugePage) throw std::bad_alloc();
  if (size < kHugePage) return ::operator new(size, kAlignment);
  if (has_given.load(std::memory_order_relaxed))
    if (void* const used = take_used(size)) return used;
  std::byte* const memory = map(rounded_up(size, page()));
  // A wish: without huge pages the system gives others. Not for the end, of less than a huge page,
  // which would be rounded up to one.
  ::madvise(memory, size / kHugePage * kHugePage, MADV_HUGEPAGE);
  return memory;
}

void give_large(void* memory, std::size_t size) noexcept {
  if (size >= kHugePage) has_given.store(true, std::memory_order_relaxed);
  if (size >= kHugePage && is_mapped(memory))
    ::munmap(memory, rounded_up(size, page()));
  else
    ::operator delete(memory, kAlignment);
}

}  // namespace corelane::detail
