/// Memory for large matrices.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace corelane::drivers::virtual_npu {

struct FreeBlock {
  void operator()(std::byte* block) const noexcept { std::free(block); }
};
using Block = std::unique_ptr<std::byte[], FreeBlock>;

/// Uninitialized, aligned to 64 bytes or more. Large ones ask for large pages: reading B once is
/// all that a product of one row does, and it is packed page after page. Throws std::bad_alloc.
inline Block allocate_block(std::size_t bytes) {
  constexpr std::size_t kLargePage = std::size_t{2} << 20;
  const bool large = bytes >= kLargePage;
  const std::size_t unit = large ? kLargePage : 64;
  if (bytes > SIZE_MAX - unit) throw std::bad_alloc();
  const std::size_t rounded = (bytes + unit - 1) / unit * unit;
  auto* block = static_cast<std::byte*>(std::aligned_alloc(unit, rounded == 0 ? unit : rounded));
  if (block == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (large) ::madvise(block, rounded, MADV_HUGEPAGE);  // Only a wish.
#endif
  return Block(block);
}

}  // namespace corelane::drivers::virtual_npu
