/// read_settings() with the places of its keys.
#pragma once

#include "corelane/base/status.h"
#include "corelane/scheduler/backend.h"
#include "scheduler/config/key_errors.h"
#include "scheduler/config/settings.h"

namespace corelane::scheduler {

/// As read_settings(const Config&, const BackendRegistry&); `errors` writes the failures.
Result<NodeSettings> read_settings(const Config& config, const BackendRegistry& registry,
                                   const KeyErrors& errors);

}  // namespace corelane::scheduler
