/// Time limits as points of a clock.
#pragma once

#include "corelane/base/clock.h"

namespace corelane {

/// `by` after `now`; saturates to kNever.
inline TimePoint later(TimePoint now, Duration by) noexcept {
  return by >= kNever - now ? kNever : now + by;
}

}  // namespace corelane
