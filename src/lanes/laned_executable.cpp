#include "lanes/laned_executable.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "lanes/lane_scheduler.h"
#include "lanes/laned_bindings.h"
#include "lanes/laned_device.h"
#include "lanes/laned_residence.h"

namespace corelane::lanes {

LanedExecutable::LanedExecutable(std::shared_ptr<LanedDevice> device,
                                 std::shared_ptr<SharedProgram> program, bool profiled,
                                 std::uint64_t generation,
                                 std::shared_ptr<const Generation> current, std::string name)
    : device_(std::move(device)),
      shared_(std::move(program)),
      profiled_(profiled),
      generation_(generation),
      current_(std::move(current)),
      name_(std::move(name)) {
  ++shared_->executables;
}

LanedExecutable::~LanedExecutable() {
  if (joined_.load(std::memory_order_relaxed)) device_->scheduler().forget(this);
  device_->remove(this);
  --shared_->executables;
}

MemoryLedger& LanedExecutable::ledger() const noexcept { return device_->ledger(); }

Status LanedExecutable::expect_copies(std::size_t requests) const {
  return shared_->expect_copies(requests, device_->info().cores.size());
}

device::MemoryFigures LanedExecutable::memory() const {
  device::MemoryFigures figures = program().memory();
  const std::size_t sharing = std::max<std::size_t>(shared_->executables, 1);
  for (std::size_t* figure : {&figures.weights, &figures.internal, &figures.code, &figures.buffers})
    *figure /= sharing;
  // What the bindings allocated is known here, the rest to the driver.
  figures.buffers += buffer_bytes.load(std::memory_order_relaxed);
  return figures;
}

Result<std::shared_ptr<device::Bindings>> LanedExecutable::new_bindings() {
  auto bindings = std::make_shared<LanedBindings>(shared_from_this());
  const std::size_t requests = live_bindings().load(std::memory_order_relaxed);
  CORELANE_TRY(expect_copies(requests));
  // Copies and requests are made now and not in the first job, whose time users measure.
  CORELANE_TRY(program().reserve(1, requests));
  CORELANE_TRY(recount());
  return bindings;
}

/// Copies for single cores are made for the first cores, so for all up to the last of these.
Status LanedExecutable::reserve_for(std::uint64_t core_bits) {
  const auto copies = static_cast<std::size_t>(std::bit_width(core_bits));
  const auto width = static_cast<std::size_t>(std::popcount(core_bits));
  CORELANE_TRY(expect_copies(copies));
  CORELANE_TRY(program().reserve(1, copies));
  if (width > 1 && device_->info().capabilities.multi_core_jobs)
    CORELANE_TRY(program().reserve(width, 1));
  return recount();
}

Result<std::shared_ptr<device::Residence>> LanedExecutable::make_resident(
    const device::CoreSet& cores, device::Residency residency) {
  return LanedResidence::make(shared_from_this(), cores, residency);
}

Result<device::Executable::Precompiled> LanedExecutable::export_precompiled() const {
  return program().export_precompiled();
}

}  // namespace corelane::lanes
