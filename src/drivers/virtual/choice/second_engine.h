/// The second engine of this device, opened at the first need.
#pragma once

#include <memory>

#include "base/sync.h"
#include "corelane/driver/lane_engine.h"
#include "corelane/driver/module.h"

namespace corelane::drivers::virtual_npu {

/// Any thread.
class SecondEngine {
 public:
  /// `device`: what the device is opened with; its cores count.
  explicit SecondEngine(device::OpenRequest device) : device_(std::move(device)) {}

  /// The engine, with its name and version. kUnsupported where its module or its library is not
  /// there, with what to install. A failure is not remembered.
  Result<device::OpenedEngine> get();

 private:
  const device::OpenRequest device_;
  Mutex mutex_{LockRank::kLeaf};
  device::OpenedEngine opened_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace corelane::drivers::virtual_npu
