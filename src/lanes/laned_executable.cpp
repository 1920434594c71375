#include "lanes/laned_executable.h"

#include <algorithm>

#include "lanes/lane_scheduler.h"
#include "lanes/laned_bindings.h"
#include "lanes/laned_device.h"

namespace corelane::lanes {

LanedExecutable::LanedExecutable(std::shared_ptr<LanedDevice> device,
                                 std::shared_ptr<device::LaneProgram> program, bool profiled)
    : device_(std::move(device)), program_(std::move(program)), profiled_(profiled) {}

LanedExecutable::~LanedExecutable() {
  device_->scheduler().release_residency(this);
  device_->remove(this);
}

device::MemoryFigures LanedExecutable::memory() const {
  device::MemoryFigures figures = program_->memory();
  // What the bindings allocated is known here, the rest to the driver.
  figures.buffers += buffer_bytes.load(std::memory_order_relaxed);
  return figures;
}

Result<std::shared_ptr<device::Bindings>> LanedExecutable::new_bindings() {
  auto bindings = std::make_shared<LanedBindings>(shared_from_this());
  // Copies and requests are made now and not in the first job, whose time users measure.
  CORELANE_TRY(program_->reserve(1, live_bindings.load(std::memory_order_relaxed)));
  return bindings;
}

Status LanedExecutable::make_resident(const device::CoreSet& cores, device::Residency residency) {
  CORELANE_TRY(cores.check(device_->info().cores.size()));
  // Before cores are held: a failure leaves nothing to give back.
  CORELANE_TRY(program_->reserve(std::max<std::size_t>(cores.count(), 1), 1));
  return device_->scheduler().make_resident(this, cores, residency);
}

void LanedExecutable::release_residency() { device_->scheduler().release_residency(this); }

Result<device::Executable::Precompiled> LanedExecutable::export_precompiled() const {
  return program_->export_precompiled();
}

}  // namespace corelane::lanes
