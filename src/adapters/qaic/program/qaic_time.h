/// Times of the API: microseconds, of which the highest number never passes.
#pragma once

#include <cstdint>
#include <limits>

#include "QAicTypes.h"
#include "base/later.h"

namespace corelane::qaic {

/// What 50 tries that wait 5, 10, 15, ... ms take together: so long a submission waits for room in
/// a device's queue.
constexpr Duration kRoomTime = std::chrono::milliseconds(5) * (50 * 51 / 2);

/// The point of time `us` microseconds after `now`; kNever for QAIC_WAIT_FOREVER, and for what no
/// clock counts.
inline TimePoint after_us(TimePoint now, std::uint64_t us) noexcept {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max() / 1000;
  if (us >= kMost) return kNever;
  return later(now, std::chrono::microseconds(static_cast<std::int64_t>(us)));
}

}  // namespace corelane::qaic
