/// Options of a device's text that the library reads for every device of lanes: see registry.h.
#pragma once

#include "corelane/device/registry.h"

namespace corelane::device {

struct LaneOptions;

/// Takes these options out of `spec`, so that the driver sees its own alone, and reads them.
/// kInvalidArgument with the option and what is allowed.
Status take_lane_options(DeviceSpec& spec, LaneOptions& options);

}  // namespace corelane::device
