/// The older form of settings for the stages of `S`: `k = "x||y"`, one value for each stage.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/scheduler/backend.h"

namespace corelane::scheduler {

/// The settings of each of `stages` stages of backend `name`: values with "||" divided, all others
/// as they are, and those of keys that hold expressions of backends. kInvalidArgument for a wrong
/// number of values, and for an empty one.
Result<std::vector<Config>> stage_values(std::string_view name, const Config& config,
                                         std::size_t stages);

}  // namespace corelane::scheduler
