/// What calls took: S(n) of each group, measured.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "corelane/base/clock.h"

namespace corelane::scheduler {

/// Remembers at most kSizes sizes of each group, those that ran last. Not thread-safe.
class CostTable {
 public:
  static constexpr std::size_t kSizes = 64;

  explicit CostTable(std::size_t groups) : groups_(groups) {}
  /// A call that succeeded took `time`. A group that is not there, and a size of 0, are left out;
  /// times are held to 0..104 days.
  void ended(std::uint32_t group, std::uint32_t size, Duration time);
  /// S(size): measured (the average of the first eight calls, then a moving one of weight 1/8), or
  /// else estimated from the sizes that were measured: a line through the nearest two that does not
  /// fall, never less than a smaller size took, at least the share of a larger one, and beyond the
  /// largest at most its time per item. Of one size alone: its time for larger ones, its share for
  /// smaller ones, so that an unknown size looks cheap and is tried. 0 where nothing was measured.
  Duration of(std::uint32_t group, std::uint32_t size) const;
  /// Whether of() has something to go by.
  bool known(std::uint32_t group) const noexcept {
    return group < groups_.size() && !groups_[group].empty();
  }

 private:
  struct Sample {
    std::uint32_t size = 0;
    Duration average{};
    std::uint64_t seen = 0;    ///< When it was last seen, for what is forgotten.
    std::uint32_t weight = 0;  ///< Calls in the average, up to what it remembers.
  };
  std::vector<std::vector<Sample>> groups_;  ///< Each in the order of sizes.
  std::uint64_t seen_ = 0;
};

}  // namespace corelane::scheduler
