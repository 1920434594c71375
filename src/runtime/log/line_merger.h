/// Which line of a merged log comes next, and when. Plain data, no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "corelane/runtime/merged_log.h"

namespace corelane::runtime {

/// Lines go in with stamps in any order, and come out in the order of their stamps, those of one
/// stamp as they went in. One that is late comes out at the next take(), in order with the others
/// of that call.
class LineMerger {
 public:
  using Lines = std::vector<MergedLine>;

  /// `memory`: bytes that lines may take from add() to forget().
  LineMerger(Duration window, std::size_t memory) : window_(window), memory_(memory) {}

  /// False: there is no room, and the line is counted as dropped.
  bool add(MergedLine line);
  /// The lines whose window has passed.
  Lines take(TimePoint now);
  /// All lines.
  Lines take_all();
  /// They were taken and are delivered: there is room for others.
  void forget(const Lines& lines);
  /// When the first line can be taken; none where there is no line.
  std::optional<TimePoint> due() const;
  std::uint64_t dropped() const noexcept { return dropped_; }

 private:
  Lines take_before(std::multimap<TimePoint, MergedLine>::iterator end);

  const Duration window_;
  const std::size_t memory_;
  std::multimap<TimePoint, MergedLine> lines_;
  std::size_t used_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace corelane::runtime
