// Under the address sanitizer a throwing operator new ends the process where it should throw. The
// engine allocates what a damaged model asks for, and its std::bad_alloc is part of the tests.

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

/// Null for more than any machine has; the sanitizer's allocator reports that, too.
void* allocate(std::size_t size, std::size_t alignment) noexcept {
  constexpr std::size_t kTooMuch = std::size_t{1} << 38;
  if (size > kTooMuch) return nullptr;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(std::max<std::size_t>(size, 1));
  const std::size_t units = std::max<std::size_t>((size + alignment - 1) / alignment, 1);
  return std::aligned_alloc(alignment, units * alignment);
}
void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return or_throw(allocate(size, 1)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return or_throw(allocate(size, static_cast<std::size_t>(alignment)));
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
