#include "lanes/aftermath.h"

#include <algorithm>

#include "lanes/lane_job.h"

namespace corelane::lanes {

bool Aftermath::calls_back() const noexcept {
  return !events.empty() || std::any_of(completed.begin(), completed.end(),
                                        [](const auto& job) { return job->calls_back(); });
}

bool Aftermath::empty() const noexcept {
  return completed.empty() && released.empty() && offered.empty() && woken.empty() &&
         events.empty() && complaints.empty() && !abandoned;
}

}  // namespace corelane::lanes
