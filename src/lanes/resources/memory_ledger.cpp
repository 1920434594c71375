#include "lanes/resources/memory_ledger.h"

namespace corelane::lanes {

Status MemoryLedger::refuse(std::size_t held, std::size_t bytes, std::string_view what) const {
  return error(Code::kOutOfMemory,
               "device '{}' has no room for {} of {} bytes: {} of its {} bytes are in use; free "
               "other objects of it, or open it with a higher limit (option memory)",
               device_, what, bytes, held, limit_)
      .with(Detail::kLimit, fmt::format("{} bytes", limit_))
      .with(Detail::kGiven, fmt::format("{} bytes", bytes));
}

Status MemoryLedger::check(std::size_t bytes, std::string_view what) const {
  const std::size_t held = held_.load(std::memory_order_relaxed);
  // Measured figures may lie above the limit.
  const bool fits = !limited() || (held <= limit_ && bytes <= limit_ - held);
  return fits ? Status() : refuse(held, bytes, what);
}

Status MemoryLedger::take(std::size_t bytes, std::string_view what) {
  if (!limited()) return {};
  std::size_t held = held_.load(std::memory_order_relaxed);
  do {
    if (held > limit_ || bytes > limit_ - held) return refuse(held, bytes, what);
  } while (!held_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
  return {};
}

void MemoryLedger::give_back(std::size_t bytes) noexcept {
  if (limited()) held_.fetch_sub(bytes, std::memory_order_relaxed);
}

Status MemoryLedger::correct(std::size_t before, std::size_t now, std::string_view what) {
  if (!limited()) return {};
  if (now <= before) {
    give_back(before - now);
    return {};
  }
  const std::size_t grown = now - before;
  const std::size_t held = held_.fetch_add(grown, std::memory_order_relaxed);
  return held <= limit_ && grown <= limit_ - held ? Status() : refuse(held, grown, what);
}

}  // namespace corelane::lanes
