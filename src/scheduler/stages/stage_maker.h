/// Makes the inner stage of a stage.
#pragma once

#include <memory>
#include <string_view>

#include "corelane/scheduler/stage.h"

namespace corelane::scheduler {

/// The stage that `config[key]` names, or `otherwise`. A backend that is not a stage becomes one
/// with a thread of its own.
Result<std::unique_ptr<Stage>> make_stage(const Config& config, std::string_view key,
                                          std::string_view otherwise,
                                          const BackendSurroundings& surroundings);

/// kWrongState: a second init() of the stage `name`.
Failure initialised_before(std::string_view name);

}  // namespace corelane::scheduler
