/// What open_device() makes of a driver's engine or device. Implemented on the floors above, in
/// src/lanes and src/drivers.
#pragma once

#include <cstddef>
#include <memory>

#include "corelane/base/clock.h"
#include "corelane/device/fault.h"

namespace corelane::device {

class Device;
class LaneEngine;
struct DeviceInfo;

struct LaneOptions {
  std::shared_ptr<Clock> clock = real_clock();
  std::shared_ptr<FaultPoint> fault_point;  ///< May be null.
  /// How long an idle lane's thread spins for the next job before it sleeps. At most one lane
  /// spins at a time, none on a machine with one CPU.
  Duration spin = std::chrono::microseconds(30);
  std::size_t memory_limit = 0;  ///< Bytes; see DeviceInfo.
  std::size_t depth_limit = 0;   ///< Jobs; see DeviceInfo.
  bool lease = false;            ///< Residences take leases of their cores.
};

/// A device of info.cores.size() lanes over the engine.
Result<std::shared_ptr<Device>> make_laned_device(DeviceInfo info,
                                                  std::shared_ptr<LaneEngine> engine,
                                                  const LaneOptions& options);

/// Checks the arguments of each call once, with messages that say what is allowed, and passes it
/// on. Executables, bindings and completions are those of `inner`.
std::shared_ptr<Device> wrap_validating(std::shared_ptr<Device> inner);

/// Injects the result and memory faults of `plan` (short_result, flip, oom). Wraps executables and
/// bindings.
std::shared_ptr<Device> wrap_faulty(std::shared_ptr<Device> inner, const FaultPlan& plan);

}  // namespace corelane::device
