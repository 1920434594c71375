/// The engine of the null device: it runs nothing, takes the scripted time, and gives zeros or a
/// copy of the input.
#pragma once

#include <memory>

#include "corelane/driver/lane_engine.h"
#include "drivers/null/null_script.h"

namespace corelane::drivers::null {

std::shared_ptr<device::LaneEngine> make_null_engine(Script script, std::shared_ptr<Clock> clock);

}  // namespace corelane::drivers::null
