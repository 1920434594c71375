/// The advisory locks of devices between processes: on where `CORELANE_QAIC_LOCK` says how long a
/// caller may wait for one. A lock stands for nothing but itself: who does not ask for it is not
/// kept out.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/sync.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/device/lease.h"

namespace corelane::qaic {

/// The most that a caller waits for a lock: the seconds of `CORELANE_QAIC_LOCK`, 1 to 86400.
/// kUnsupported where the variable is not set, kInvalidArgument for another value.
Result<Duration> lock_limit();

/// The locks of this process. Each is a lease of a name that no device's cores have, so the kernel
/// releases it when the process ends in any way. Any thread.
class DeviceLocks {
 public:
  explicit DeviceLocks(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}

  /// Takes the lock of a device's instance. kBusy, with the process that holds it, when it is not
  /// free after `wait` (0: at once); this process may be that one. kIo as Lease::acquire().
  Status take(const std::string& instance, Duration wait);
  /// Gives it back. kWrongState where this process does not hold it.
  Status give(const std::string& instance);

 private:
  const std::shared_ptr<Clock> clock_;
  Mutex mutex_{LockRank::kLeaf};
  std::map<std::string, device::Lease> held_ CORELANE_GUARDED_BY(mutex_);
};

/// The locks that the C functions take, on the real clock: another process may hold one.
DeviceLocks& device_locks();

}  // namespace corelane::qaic
