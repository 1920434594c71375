/// How much memory a piece of code took, from operator new of the whole process.
#pragma once

#include <cstddef>

namespace corelane::robustness {

/// False under a sanitizer, whose own operator new stays in place.
bool memory_is_counted() noexcept;

/// Peak of what was live above the level at construction. Allocations of all threads count.
class PeakMemory {
 public:
  PeakMemory() noexcept;
  std::size_t bytes() const noexcept;

 private:
  std::size_t level_;
};

}  // namespace corelane::robustness
