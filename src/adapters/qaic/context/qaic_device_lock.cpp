#include "adapters/qaic/context/qaic_device_lock.h"

#include <algorithm>
#include <utility>

#include "base/later.h"
#include "base/leaked.h"
#include "base/text_parts.h"
#include "base/trust/secure_environment.h"
#include "corelane/device/core_set.h"

namespace corelane::qaic {
namespace {

constexpr const char* kLockVariable = "CORELANE_QAIC_LOCK";
constexpr unsigned kMostSeconds = 86400;
/// The kernel tells nobody that a lock became free.
constexpr Duration kStep = std::chrono::milliseconds(10);

/// A name of its own among the leases, of one place.
std::string lease_name(const std::string& instance) { return "device lock of " + instance; }

/// Nobody notifies.
void pause(Clock& clock, TimePoint until) {
  Mutex mutex{LockRank::kDoorWait};
  std::condition_variable never;
  MutexLock lock(mutex);
  while (clock.wait_until(lock.native(), never, until)) {
  }
}

/// "process 12 (program)", by its own word.
std::string holder_of(const std::string& instance) {
  const auto holders = device::Lease::holders(lease_name(instance), 1);
  if (!holders || holders->empty()) return "a process that has just taken it";
  const auto& holder = holders->front();
  return holder.program.empty() ? "process " + holder.process
                                : fmt::format("process {} ({})", holder.process, holder.program);
}

}  // namespace

Result<Duration> lock_limit() {
  const std::string text = environment_text(kLockVariable);
  if (text.empty())
    return error(Code::kUnsupported,
                 "locks of devices are off; set {} to the seconds that a caller may wait for one, "
                 "or activate a program to hold its cores",
                 kLockVariable);
  const auto seconds = parse_number<unsigned>(text);
  if (!seconds || *seconds == 0 || *seconds > kMostSeconds)
    return error(Code::kInvalidArgument, "{} is '{}'; it takes seconds, 1 to {}", kLockVariable,
                 text, kMostSeconds);
  return Duration(std::chrono::seconds(*seconds));
}

Status DeviceLocks::take(const std::string& instance, Duration wait) {
  const TimePoint start = clock_->now();
  const TimePoint until = later(start, wait);
  for (;;) {
    auto lease = device::Lease::acquire(lease_name(instance), 1, device::CoreSet::of({0}),
                                        {.clock = clock_});
    if (lease) {
      const MutexLock lock(mutex_);
      // Replaces nothing: a lock that this process holds keeps itself from being taken twice.
      held_.insert_or_assign(instance, *std::move(lease));
      return {};
    }
    const bool taken =
        lease.error().code() == Code::kOutOfCores || lease.error().code() == Code::kBusy;
    if (!taken) return lease.error();
    const TimePoint now = clock_->now();
    if (now >= until)
      return error(Code::kBusy,
                   "the lock of device '{}' is held by {}, {} ms after it was asked for; wait for "
                   "that process, or end it",
                   instance, holder_of(instance), (now - start) / std::chrono::milliseconds(1));
    pause(*clock_, std::min(until, now + kStep));
  }
}

Status DeviceLocks::give(const std::string& instance) {
  std::map<std::string, device::Lease>::node_type given;  // Unlocked after the mutex.
  const MutexLock lock(mutex_);
  given = held_.extract(instance);
  if (!given.empty()) return {};
  return error(Code::kWrongState, "this process does not hold the lock of device '{}'", instance);
}

DeviceLocks& device_locks() {
  static Leaked<DeviceLocks> locks(real_clock());
  return *locks;
}

}  // namespace corelane::qaic
