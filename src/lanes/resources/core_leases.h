/// The leases of a device's cores: one for each core, shared by all residences that lie on it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/sync.h"
#include "corelane/device/lease.h"

namespace corelane::lanes {

/// A lease stands between processes; between the residences of one device the LaneTable decides.
/// Any thread.
class CoreLeases {
 public:
  using Held = std::vector<std::shared_ptr<const device::Lease>>;

  /// `on`: the device's text asked for leases. Without, take() takes none.
  CoreLeases(bool on, std::string instance, std::size_t cores, std::shared_ptr<Clock> clock)
      : on_(on), instance_(std::move(instance)), cores_(cores), clock_(std::move(clock)) {}

  /// Takes all of these cores, or none: kOutOfCores with the processes that have some, whose cores
  /// are added to `elsewhere`; kBusy and kIo as Lease::acquire().
  Status take(std::uint64_t core_bits, Held& held, std::uint64_t& elsewhere);

  bool on() const noexcept { return on_; }
  /// Whether figures are to be published: 100 ms have passed since they were. True for one of those
  /// who ask.
  bool publishes(TimePoint now) noexcept;
  /// Writes the figures of each core that is held, by core.
  void publish(const std::vector<device::LeaseFigures>& figures);

 private:
  std::shared_ptr<const device::Lease> lease_of(std::size_t core);

  const bool on_;
  const std::string instance_;
  const std::size_t cores_;
  const std::shared_ptr<Clock> clock_;
  std::atomic<TimePoint::rep> publish_next_{0};
  /// Held while leases are taken, which may wait for another process: by take() alone.
  Mutex taking_{LockRank::kLaneLeases};
  /// For moments: jobs take it on their way.
  Mutex mutex_{LockRank::kLeaf};
  std::array<std::weak_ptr<const device::Lease>, device::CoreSet::kMaxCores> by_core_
      CORELANE_GUARDED_BY(mutex_);
};

}  // namespace corelane::lanes
