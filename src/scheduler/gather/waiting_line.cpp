#include "scheduler/gather/waiting_line.h"

#include <algorithm>
#include <ranges>

namespace corelane::scheduler {

void WaitingLine::count(const Waiting& request, int sign) noexcept {
  const auto add = [sign](std::uint64_t& sum, std::uint64_t what) {
    sum = sign > 0 ? sum + what : sum - what;
  };
  add(items_, request.items);
  add(bytes_, request.bytes);
  if (request.part_ != 0) return;
  add(line_items_, request.items);
  add(line_bytes_, request.bytes);
}

void WaitingLine::add(const WaitingPtr& request, Duration level) {
  request->part_ = 0;
  least_advance_ = std::min(least_advance_, level * request->priority);
  request->place_ = {order_of(*request, level), ++numbers_};
  // Mostly they come in the order in which they leave.
  line_.emplace_hint(line_.end(), request->place_, request);
  if (request->deadline != kNever)
    half_times_.emplace(std::pair(request->half_time(), request->place_.number), request.get());
  count(*request, 1);
}

void WaitingLine::add_part(const WaitingList& requests) {
  ++part_numbers_;
  std::uint64_t at = 0;
  for (const WaitingPtr& request : requests) {
    request->part_ = part_numbers_;
    request->place_.number = at++;
    parts_.emplace_hint(parts_.end(), std::pair(request->part_, request->place_.number), request);
    count(*request, 1);
  }
}

void WaitingLine::remove(const Waiting& request) {
  count(request, -1);
  const std::uint64_t number = request.place_.number;
  if (request.part_ != 0) {
    parts_.erase(std::pair(request.part_, number));
    return;
  }
  if (request.deadline != kNever) half_times_.erase(std::pair(request.half_time(), number));
  line_.erase(request.place_);
}

std::pair<std::uint64_t, WaitingList> WaitingLine::next_part(std::uint64_t after) const {
  std::pair<std::uint64_t, WaitingList> found;
  auto at = parts_.lower_bound(std::pair(after + 1, std::uint64_t{0}));
  if (at != parts_.end()) found.first = at->first.first;
  for (; at != parts_.end() && at->first.first == found.first; ++at)
    found.second.push_back(at->second);
  return found;
}

WaitingList WaitingLine::first(std::uint32_t items, Place front) const {
  return leading(std::ranges::subrange(front, line_.end()) | std::views::values, items);
}

WaitingList WaitingLine::all() const {
  WaitingList found;
  for (const auto& [place, request] : parts_) found.push_back(request);
  for (const auto& [place, request] : line_) found.push_back(request);
  return found;
}

TimePoint WaitingLine::oldest() const noexcept {
  const WaitingPtr request = oldest_request();
  return request == nullptr ? kNever : request->submitted;
}

/// Without low priorities it is the first one, and no other is looked at.
WaitingPtr WaitingLine::oldest_request() const noexcept {
  const WaitingPtr* oldest = nullptr;
  for (const auto& [place, request] : line_) {
    // A request was submitted at its order plus what its priority is worth, which is at least
    // `least_advance_`; the orders grow from here on.
    if (oldest != nullptr && place.order + least_advance_ >= (*oldest)->submitted) break;
    if (oldest == nullptr || request->submitted < (*oldest)->submitted) oldest = &request;
  }
  return oldest == nullptr ? nullptr : *oldest;
}

}  // namespace corelane::scheduler
