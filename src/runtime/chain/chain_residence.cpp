#include <utility>

#include "runtime/chain/chain_device.h"
#include "runtime/chain/chain_executable.h"

namespace corelane::runtime {

/// What it has by the time of a failure goes with it.
Result<std::shared_ptr<device::Residence>> ChainResidence::make(std::shared_ptr<ChainExecutable> of,
                                                                const device::CoreSet& cores,
                                                                device::Residency residency) {
  const ChainDevice& device = *of->device();
  CORELANE_TRY(cores.check(device.info().cores.size()));
  std::shared_ptr<ChainResidence> made(new ChainResidence(std::move(of), residency));
  Parts parts(device.members().size());
  std::uint64_t held = 0;
  for (std::size_t part = 0; part < device.parts(); ++part) {
    const std::size_t member = device.member_of(part);
    const auto& executable = made->executable_->parts()[part];
    if (parts[member] != nullptr) {
      // A second part on this device runs on the cores that the first one holds.
      CORELANE_TRY(parts[member]->add(executable));
      continue;
    }
    const ChainObservers::Source& source = device.members()[member];
    const device::CoreSet own = cores_on(source.cores, cores);
    if (own.empty())
      return error(Code::kInvalidArgument,
                   "core set '{}' of the chain '{}' has no core of '{}', which runs part '{}'",
                   cores.to_string(), device.info().instance, source.device->info().instance,
                   made->executable_->part_name(part));
    CORELANE_ASSIGN(parts[member], executable->make_resident(own, residency));
    held |= source.cores.among_all(parts[member]->cores().bits());
  }
  made->cores_ = device::CoreSet::mask(held);
  const MutexLock lock(made->mutex_);
  made->parts_ = std::move(parts);
  return made;
}

Status ChainResidence::add(const std::shared_ptr<device::Executable>& executable) {
  const auto joining = std::dynamic_pointer_cast<ChainExecutable>(executable);
  if (joining == nullptr || joining->device() != executable_->device())
    return error(Code::kInvalidArgument,
                 "the executable was not prepared by device '{}', whose cores '{}' are held; "
                 "prepare it there",
                 executable_->device()->info().instance, cores_.to_string());
  Parts parts;
  {
    const MutexLock lock(mutex_);
    parts = parts_;
  }
  Status status = parts.empty() ? error(Code::kDeviceLost,
                                        "the residence on '{}' ended with one of its devices",
                                        executable_->device()->info().instance)
                                : Status();
  for (std::size_t part = 0; status.ok() && part < joining->parts().size(); ++part)
    status = parts[joining->device()->member_of(part)]->add(joining->parts()[part]);
  if (status.code() != Code::kDeviceLost) return status;
  // The cores of the devices that are still there are free too, for what is prepared anew.
  const MutexLock lock(mutex_);
  parts_.swap(parts);
  parts_.clear();
  return status;
}

}  // namespace corelane::runtime
