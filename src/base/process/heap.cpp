#include "base/process/heap.h"

#include <malloc.h>

#include <chrono>

namespace corelane {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(100);
constexpr Duration kMostLooking = std::chrono::seconds(10);

}  // namespace

void trim_heap() noexcept { malloc_trim(0); }

bool await_end_of(const std::weak_ptr<const void>& object, const bool& stop,
                  std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                  Clock& clock) {
  const TimePoint most = clock.now() + kMostLooking;
  while (!stop && !object.expired() && clock.now() < most)
    clock.wait_until(lock, changed, clock.now() + kLook);
  return !stop;
}

}  // namespace corelane
