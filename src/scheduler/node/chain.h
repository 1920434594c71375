/// The schedulers of the library by name.
#pragma once

#include "corelane/scheduler/backend.h"

namespace corelane::scheduler {

/// Adds BaselineSchedule, Fusion, ContrastInstances and InstanceThread.
void add_chain(BackendRegistry& registry);

}  // namespace corelane::scheduler
