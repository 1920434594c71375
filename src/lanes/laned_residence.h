/// A residence on a LanedDevice: how its cores are taken, and what it holds.
#pragma once

#include <cstdint>
#include <memory>

#include "corelane/device/residence.h"
#include "lanes/resources/core_leases.h"

namespace corelane::lanes {

class LanedExecutable;

class LanedResidence final : public device::Residence {
 public:
  /// See device::Executable::make_resident.
  static Result<std::shared_ptr<device::Residence>> make(
      std::shared_ptr<LanedExecutable> executable, const device::CoreSet& cores,
      device::Residency residency);

  LanedResidence(std::shared_ptr<LanedExecutable> executable, std::uint64_t id,
                 std::uint64_t core_bits, device::Residency residency, CoreLeases::Held leases)
      : executable_(std::move(executable)),
        id_(id),
        cores_(device::CoreSet::mask(core_bits)),
        residency_(residency),
        leases_(std::move(leases)) {}
  ~LanedResidence() override;

  device::CoreSet cores() const noexcept override { return cores_; }
  Status add(const std::shared_ptr<device::Executable>& executable) override;
  device::Residency residency() const noexcept override { return residency_; }

 private:
  const std::shared_ptr<LanedExecutable> executable_;
  const std::uint64_t id_;
  const device::CoreSet cores_;
  const device::Residency residency_;
  /// Given back after the cores: nobody else has them while this device still counts them.
  const CoreLeases::Held leases_;
};

}  // namespace corelane::lanes
