/// Where one inference came by on the host, and when. Plain values.
#pragma once

#include "corelane/base/clock.h"

namespace corelane {

/// Where the time of one inference went. `device` is end - start on the core.
struct RunTimes {
  Duration copy_in{}, queue{}, device{}, copy_out{};
};

/// Points of the device's clock; what the device did in between is in the JobRecord. A stamp is
/// TimePoint{} where the inference did not come, such as a conversion that it does not need. After
/// a blocking run that asks nothing of the host (no conversion, fence or timeout, and on cores that
/// no activation holds) all of them are.
struct RunStamps {
  TimePoint enqueued{};    ///< Its submission began.
  TimePoint copy_in{};     ///< The conversion of its inputs began.
  TimePoint copied_in{};   ///< And ended: the device gets the job next.
  TimePoint copy_out{};    ///< The conversion of its outputs began.
  TimePoint copied_out{};  ///< And ended.
};

}  // namespace corelane
