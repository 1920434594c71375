/// Devices around a device, applied by open_device(). Implemented in src/drivers.
#pragma once

#include <memory>

#include "corelane/device/device.h"
#include "corelane/device/fault.h"

namespace corelane::device {

/// Checks the arguments of each call once, with messages that say what is allowed, and passes it
/// on. Executables, bindings and completions are those of `inner`.
std::shared_ptr<Device> wrap_validating(std::shared_ptr<Device> inner);

/// Injects the result and memory faults of `plan` (short_result, flip, oom). Wraps executables and
/// bindings.
std::shared_ptr<Device> wrap_faulty(std::shared_ptr<Device> inner, const FaultPlan& plan);

}  // namespace corelane::device
