#include "base/process/heap.h"

#include <malloc.h>

#include <chrono>

namespace corelane {
namespace {

/// Free pieces: to walk over so many takes a millisecond, to give them back 0.1 s.
constexpr std::size_t kMostPieces = 65536;
constexpr Duration kLook = std::chrono::milliseconds(100);
constexpr Duration kMostLooking = std::chrono::seconds(10);

}  // namespace

void trim_heap() noexcept {
  if (mallinfo2().ordblks <= kMostPieces) malloc_trim(0);
}

bool await_end_of(const std::weak_ptr<const void>& object, const bool& stop,
                  std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                  Clock& clock) {
  const TimePoint most = clock.now() + kMostLooking;
  while (!stop && !object.expired() && clock.now() < most)
    clock.wait_until(lock, changed, clock.now() + kLook);
  return !stop;
}

}  // namespace corelane
