/// The virtual NPU as a device: profile, engine, lanes.
#pragma once

#include <memory>

#include "corelane/base/status.h"
#include "corelane/device/registry.h"

namespace corelane::drivers::virtual_npu {

/// kInvalidArgument for a profile or option it does not know. Never throws.
Result<std::shared_ptr<device::Device>> open_virtual_device(const device::DeviceSpec& spec,
                                                            const device::OpenOptions& options);

}  // namespace corelane::drivers::virtual_npu
