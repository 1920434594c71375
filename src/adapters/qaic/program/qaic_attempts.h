/// How a program's user wants it made, checked.
#pragma once

#include <cstdint>

#include "QAicApi.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"

namespace corelane::qaic {

/// How long inferences may take.
struct AttemptRules {
  Duration time = std::chrono::milliseconds(5000);  ///< Of one attempt.
  std::uint32_t retries = 5;                        ///< Attempts after the first.
  /// The time of all attempts together.
  Duration whole() const noexcept { return time * (static_cast<std::int64_t>(retries) + 1); }
};

/// Null: the defaults. kInvalidArgument (an undefined bit, too many retries). devMapping is
/// place()'s. Any thread.
Result<AttemptRules> check_properties(const QAicProgramProperties* properties);

/// Null: the defaults. kInvalidArgument (an undefined bit, a number of threads that is not from 1
/// to 1024). Any thread.
Status check_properties(const QAicQueueProperties* properties);

}  // namespace corelane::qaic
