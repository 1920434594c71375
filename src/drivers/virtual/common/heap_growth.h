/// What the heap of this process grows by while something is made.
#pragma once

#include <cstddef>

namespace corelane::drivers::virtual_npu {

/// Bytes on the heap of this process; 0 under a sanitizer, which has its own heap. An estimate by
/// pages from the first call on that finds the heap in very many free pieces. Any thread.
std::size_t heap_bytes();

/// Measures from its construction on. What the heap grows by while several are measured is divided
/// among them: then each figure is an estimate, and their sum is exact. Any thread.
class HeapGrowth {
 public:
  HeapGrowth();
  ~HeapGrowth();
  HeapGrowth(const HeapGrowth&) = delete;
  HeapGrowth& operator=(const HeapGrowth&) = delete;

  /// So far; 0 where the heap has shrunk.
  std::size_t bytes() const;

 private:
  double share_ = 0;  ///< Guarded by the meter's lock.
};

}  // namespace corelane::drivers::virtual_npu
