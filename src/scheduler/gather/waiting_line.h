/// The line of a node: the requests that wait, in the order in which they leave.
#pragma once

#include <cstdint>
#include <utility>

#include "scheduler/gather/waiting.h"

namespace corelane::scheduler {

/// The first of `requests` whose items are at most `items` together; stops at the first one that
/// would be too many.
template <class Requests>
WaitingList leading(const Requests& requests, std::uint32_t items) {
  WaitingList found;
  std::uint64_t sum = 0;
  for (const WaitingPtr& request : requests) {
    sum += request->items;
    if (sum > items) break;
    found.push_back(request);
    if (sum == items) break;
  }
  return found;
}

/// Requests in the order of their places, and before them the parts of batches that failed, which
/// run by themselves. Not thread-safe.
class WaitingLine {
 public:
  /// `level` is what one level of priority is worth. The number of its place is the next one.
  void add(const WaitingPtr& request, Duration level);
  /// Back in as a part of its own; `requests` were in one batch.
  void add_part(const WaitingList& requests);
  /// It is in the line or in a part.
  void remove(const Waiting& request);

  bool empty() const noexcept { return line_.empty() && parts_.empty(); }
  std::uint64_t items() const noexcept { return items_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  std::uint64_t size() const noexcept { return line_.size() + parts_.size(); }
  /// Items and bytes of the line without the parts.
  std::uint64_t line_items() const noexcept { return line_items_; }
  std::uint64_t line_bytes() const noexcept { return line_bytes_; }
  const SureMap<LinePlace, WaitingPtr>& line() const noexcept { return line_; }
  /// The first part whose number is above `after`, and its number; empty where there is none.
  std::pair<std::uint64_t, WaitingList> next_part(std::uint64_t after) const;
  using Place = SureMap<LinePlace, WaitingPtr>::const_iterator;
  /// leading() of the line from `front` on.
  WaitingList first(std::uint32_t items, Place front) const;
  /// All, parts first.
  WaitingList all() const;
  /// The earliest submission in the line.
  TimePoint oldest() const noexcept;
  /// The earliest Waiting::half_time() in the line; kNever where nothing in it has a deadline.
  TimePoint first_half_time() const noexcept {
    return half_times_.empty() ? kNever : half_times_.begin()->first.first;
  }
  /// The request that was submitted first and is in no batch, for "drop_oldest"; null: none.
  WaitingPtr oldest_request() const noexcept;

 private:
  void count(const Waiting& request, int sign) noexcept;

  SureMap<LinePlace, WaitingPtr> line_;
  SureMap<std::pair<TimePoint, std::uint64_t>, const Waiting*> half_times_;  ///< Of the line.
  /// By the number of the part, and the place in it.
  SureMap<std::pair<std::uint64_t, std::uint64_t>, WaitingPtr> parts_;
  std::uint64_t numbers_ = 0;
  std::uint64_t part_numbers_ = 0;
  Duration least_advance_{};  ///< Of all that were added: what their priority is worth; at most 0.
  std::uint64_t items_ = 0;
  std::uint64_t line_items_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t line_bytes_ = 0;
};

}  // namespace corelane::scheduler
