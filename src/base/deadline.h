/// Steps of long work that end at a point in time.
#pragma once

#include <string_view>

#include "corelane/base/clock.h"
#include "corelane/base/status.h"

namespace corelane {

/// kTimeout where real_clock() has passed `deadline` before `step`, which names what comes next.
inline Status check_deadline(TimePoint deadline, std::string_view step) {
  if (deadline == kNever || real_clock()->now() < deadline) return {};
  return error(Code::kTimeout, "the deadline has passed before {}", step);
}

}  // namespace corelane
