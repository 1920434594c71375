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
  if (request.in_part_)
    add(in_parts_, 1);
  else
    add(line_items_, request.items);
}

void WaitingLine::add(const WaitingPtr& request, Duration level) {
  request->in_part_ = false;
  const Duration advance = level * request->priority;
  least_advance_ = std::min(least_advance_, advance);
  request->place_ = {request->submitted - advance, ++numbers_};
  // Mostly they come in the order in which they leave.
  line_.emplace_hint(line_.end(), request->place_, request);
  count(*request, 1);
}

void WaitingLine::add_part(Part requests) {
  for (const WaitingPtr& request : requests) {
    request->in_part_ = true;
    count(*request, 1);
  }
  parts_.push_back(std::move(requests));
}

void WaitingLine::remove(const Waiting& request) {
  count(request, -1);
  if (!request.in_part_) {
    line_.erase(request.place_);
    return;
  }
  for (Part& part : parts_)
    std::erase_if(part, [&](const WaitingPtr& each) { return each.get() == &request; });
  std::erase_if(parts_, [](const Part& part) { return part.empty(); });
}

WaitingList WaitingLine::first(std::uint32_t items, Place front) const {
  return leading(std::ranges::subrange(front, line_.end()) | std::views::values, items);
}

WaitingList WaitingLine::all() const {
  WaitingList found;
  for (const Part& part : parts_) found.insert(found.end(), part.begin(), part.end());
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
    if (oldest != nullptr && place.order + least_advance_ >= (*oldest)->submitted) break;
    if (oldest == nullptr || request->submitted < (*oldest)->submitted) oldest = &request;
  }
  return oldest == nullptr ? nullptr : *oldest;
}

}  // namespace corelane::scheduler
