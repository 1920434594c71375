#include "runtime/log/line_merger.h"

#include <iterator>
#include <utility>

namespace corelane::runtime {
namespace {

/// With its place in the map.
std::size_t size_of(const MergedLine& line) noexcept {
  constexpr std::size_t kNode = 40;
  return sizeof(MergedLine) + kNode + line.part.size() + line.text.size();
}

}  // namespace

bool LineMerger::add(MergedLine line) {
  const std::size_t size = size_of(line);
  if (size > memory_ - used_) {
    ++dropped_;
    return false;
  }
  used_ += size;
  const TimePoint stamp = line.stamp;
  lines_.emplace(stamp, std::move(line));  // After others of its stamp.
  return true;
}

LineMerger::Lines LineMerger::take_before(std::multimap<TimePoint, MergedLine>::iterator end) {
  Lines taken;
  for (auto line = lines_.begin(); line != end; ++line) taken.push_back(std::move(line->second));
  lines_.erase(lines_.begin(), end);
  return taken;
}

LineMerger::Lines LineMerger::take(TimePoint now) {
  return take_before(lines_.upper_bound(now - window_));
}

LineMerger::Lines LineMerger::take_all() { return take_before(lines_.end()); }

void LineMerger::forget(const Lines& lines) {
  for (const MergedLine& line : lines) used_ -= size_of(line);
}

std::optional<TimePoint> LineMerger::due() const {
  if (lines_.empty()) return std::nullopt;
  const TimePoint first = lines_.begin()->first;
  // Without an overflow of the sum.
  return first > kNever - window_ ? kNever : first + window_;
}

}  // namespace corelane::runtime
