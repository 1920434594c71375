/// The virtual NPU as a device of lanes.
#pragma once

#include "corelane/base/status.h"
#include "corelane/driver/module.h"

namespace corelane::device {
const DriverDescription& describe_virtual();
}  // namespace corelane::device

namespace corelane::drivers::virtual_npu {

/// kInvalidArgument for an option it does not know. Any thread; never throws.
Result<device::OpenedEngine> open_virtual_engine(const device::OpenRequest& request);

}  // namespace corelane::drivers::virtual_npu
