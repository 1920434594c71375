/// Vectors of bytes for constants: large ones lie in huge pages where the system has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "corelane/base/api.h"

namespace corelane {

namespace detail {
/// `size` bytes at a multiple of 64; std::bad_alloc where there are none.
CORELANE_API void* take_large(std::size_t size);
/// Gives back what take_large(size) gave.
CORELANE_API void give_large(void* memory, std::size_t size) noexcept;
}  // namespace detail

/// For vectors that may be large: from 2 MiB on the memory is a mapping of its own, which goes back
/// to the system when it is freed, and whose whole huge pages the system is asked for (madvise(2),
/// MADV_HUGEPAGE); or heap memory whose pages earlier owners have touched. Elements that a vector
/// adds without a value have none: write to all of them. Any thread.
template <class T>
struct LargeAllocator {
  using value_type = T;
  LargeAllocator() noexcept = default;
  /// All allocators are alike.
  template <class U>
  LargeAllocator(const LargeAllocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor)
  /// Memory for `count` elements; std::bad_alloc where there is none.
  T* allocate(std::size_t count) {
    if (count > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(detail::take_large(count * sizeof(T)));
  }
  /// Gives back what allocate(count) gave.
  void deallocate(T* memory, std::size_t count) noexcept {
    detail::give_large(memory, count * sizeof(T));
  }
  /// An element without a value.
  template <class U>
  void construct(U* element) noexcept {
    ::new (static_cast<void*>(element)) U;
  }
  /// An element with one.
  template <class U, class First, class... More>
  void construct(U* element, First&& first, More&&... more) {
    ::new (static_cast<void*>(element)) U(std::forward<First>(first), std::forward<More>(more)...);
  }
  /// What one has allocated, each other one can give back.
  bool operator==(const LargeAllocator&) const noexcept { return true; }
};

/// The constants of a network. resize() without a value leaves new bytes as they are in memory.
using LargeBytes = std::vector<std::byte, LargeAllocator<std::byte>>;

}  // namespace corelane
