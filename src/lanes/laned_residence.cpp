#include "lanes/laned_residence.h"

#include <typeinfo>

#include "lanes/lane_scheduler.h"
#include "lanes/laned_device.h"
#include "lanes/laned_executable.h"

namespace corelane::lanes {

/// Chooses, prepares and leases the cores without a lock, and holds them last: if others have taken
/// one meanwhile, it chooses anew; a failure leaves nothing to give back.
Result<std::shared_ptr<device::Residence>> LanedResidence::make(
    std::shared_ptr<LanedExecutable> executable, const device::CoreSet& cores,
    device::Residency residency) {
  const LanedDevice& device = *executable->device();
  CORELANE_TRY(cores.check(device.info().cores.size()));
  LaneScheduler& scheduler = device.scheduler();
  std::uint64_t elsewhere = 0;  // Cores that other processes hold.
  Status held_elsewhere;
  for (;;) {
    const auto bits = scheduler.choose_cores(executable.get(), cores, residency, elsewhere);
    // Where it is other processes that leave too few, they are the reason.
    if (!bits) return error(elsewhere == 0 ? bits.error() : held_elsewhere);
    CORELANE_TRY(executable->reserve_for(*bits));
    CoreLeases::Held leases;
    if (Status status = device.leases().take(*bits, leases, elsewhere); !status.ok()) {
      if (status.code() != Code::kOutOfCores || cores.is_mask()) return error(std::move(status));
      held_elsewhere = std::move(status);
      continue;
    }
    const auto id = scheduler.hold_cores(executable.get(), *bits, residency);
    if (id)
      return std::make_shared<LanedResidence>(std::move(executable), *id, *bits, residency,
                                              std::move(leases));
    if (cores.is_mask() || id.error().code() != Code::kOutOfCores) return error(id.error());
  }
}

/// Prepared first, so that what fails leaves nothing to take out again.
Status LanedResidence::add(const std::shared_ptr<device::Executable>& executable) {
  const device::Executable* given = executable.get();
  const LanedDevice& device = *executable_->device();
  if (given == nullptr || typeid(*given) != typeid(LanedExecutable) ||
      static_cast<const LanedExecutable*>(given)->device() != &device)
    return error(Code::kInvalidArgument,
                 "the executable was not prepared by device '{}', whose cores '{}' are held; "
                 "prepare it there",
                 device.info().instance, cores_.to_string());
  auto& joining = static_cast<LanedExecutable&>(*executable);
  if (device.scheduler().resides(id_, &joining)) return {};
  CORELANE_TRY(joining.reserve_for(cores_.bits()));
  joining.note_joined();
  return device.scheduler().join_residence(id_, &joining);
}

LanedResidence::~LanedResidence() { executable_->device()->scheduler().release_cores(id_); }

}  // namespace corelane::lanes
