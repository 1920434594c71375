/// What calls took: S(n) of each group, measured.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "corelane/base/clock.h"

namespace corelane::scheduler {

/// Remembers at most kSizes sizes of each group. Not thread-safe.
class CostTable {
 public:
  static constexpr std::size_t kSizes = 64;

  explicit CostTable(std::size_t groups) : groups_(groups) {}
  /// A call that succeeded took `time`.
  void ended(std::uint32_t group, std::uint32_t size, Duration time);
  /// S(size): measured (a moving average that forgets), or else estimated from the sizes that were
  /// measured: a line through the nearest ones, never less than a smaller size took, and at least
  /// the share of a larger one. 0 where nothing was measured.
  Duration of(std::uint32_t group, std::uint32_t size) const;
  /// Whether of() has something to go by.
  bool known(std::uint32_t group) const noexcept { return !groups_[group].empty(); }

 private:
  struct Sample {
    std::uint32_t size = 0;
    Duration average{};
    std::uint64_t seen = 0;  ///< When it was last seen, for what is forgotten.
  };
  std::vector<std::vector<Sample>> groups_;  ///< Each in the order of sizes.
  std::uint64_t seen_ = 0;
};

}  // namespace corelane::scheduler
