/// Time limits as points of a clock.
#pragma once

#include "corelane/base/clock.h"

namespace corelane::session {

/// `by` after `now`; kNever where that is beyond all time.
inline TimePoint later(TimePoint now, Duration by) noexcept {
  return by >= kNever - now ? kNever : now + by;
}

}  // namespace corelane::session
