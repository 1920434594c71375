/// The sizes of a batch that one program serves.
#pragma once

#include <cstdint>

namespace corelane {

/// Largest size in a BatchRange.
inline constexpr std::uint32_t kMostBatch = 1024;

/// Sizes that dimension 0 of the inputs may have, both ends included: 1 <= low <= high <=
/// kMostBatch.
struct BatchRange {
  std::uint32_t low = 1;
  std::uint32_t high = 1;
  /// True for a size that the program serves.
  bool holds(std::int64_t size) const noexcept { return size >= low && size <= high; }
  bool operator==(const BatchRange&) const = default;
};

}  // namespace corelane
