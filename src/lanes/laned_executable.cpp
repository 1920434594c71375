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
                                 std::shared_ptr<device::LaneProgram> program, bool profiled,
                                 std::uint64_t generation,
                                 std::shared_ptr<const Generation> current, std::string name)
    : device_(std::move(device)),
      program_(std::move(program)),
      profiled_(profiled),
      generation_(generation),
      current_(std::move(current)),
      name_(std::move(name)) {}

LanedExecutable::~LanedExecutable() {
  if (joined_.load(std::memory_order_relaxed)) device_->scheduler().forget(this);
  device_->remove(this);
  const MutexLock lock(count_mutex_);
  ledger().give_back(counted_);
}

MemoryLedger& LanedExecutable::ledger() const noexcept { return device_->ledger(); }

/// The driver is asked without the lock. A figure that is older than one that was counted meanwhile
/// is dropped, and another taken.
Status LanedExecutable::recount() {
  if (!ledger().limited()) return {};
  for (;;) {
    const std::uint64_t before = [&] {
      const MutexLock lock(count_mutex_);
      return counts_;
    }();
    const std::size_t now = program_->memory().total();
    const MutexLock lock(count_mutex_);
    if (counts_ != before) continue;
    if (++counts_ == 1) first_bytes_ = now;
    return ledger().correct(std::exchange(counted_, now), now, "the compiled form of a program");
  }
}

/// A program with constants of its own for each core gets as many copies as jobs may run at once.
/// Refused before they are made: a copy stays with its program.
Status LanedExecutable::expect_copies(std::size_t requests) {
  if (!ledger().limited() || placement() != device::Placement::kReplicated) return {};
  const std::size_t copies = std::min(requests, device_->info().cores.size());
  std::size_t more = 0;
  {
    const MutexLock lock(count_mutex_);
    const std::size_t expected = first_bytes_ * copies;
    more = expected > counted_ ? expected - counted_ : 0;
  }
  return more == 0 ? Status() : ledger().check(more, "another core's copy of a program");
}

device::MemoryFigures LanedExecutable::memory() const {
  device::MemoryFigures figures = program_->memory();
  // What the bindings allocated is known here, the rest to the driver.
  figures.buffers += buffer_bytes.load(std::memory_order_relaxed);
  return figures;
}

Result<std::shared_ptr<device::Bindings>> LanedExecutable::new_bindings() {
  auto bindings = std::make_shared<LanedBindings>(shared_from_this());
  const std::size_t requests = live_bindings.load(std::memory_order_relaxed);
  CORELANE_TRY(expect_copies(requests));
  // Copies and requests are made now and not in the first job, whose time users measure.
  CORELANE_TRY(program_->reserve(1, requests));
  CORELANE_TRY(recount());
  return bindings;
}

/// Copies for single cores are made for the first cores, so for all up to the last of these.
Status LanedExecutable::reserve_for(std::uint64_t core_bits) {
  const auto copies = static_cast<std::size_t>(std::bit_width(core_bits));
  const auto width = static_cast<std::size_t>(std::popcount(core_bits));
  CORELANE_TRY(expect_copies(copies));
  CORELANE_TRY(program_->reserve(1, copies));
  if (width > 1 && device_->info().capabilities.multi_core_jobs)
    CORELANE_TRY(program_->reserve(width, 1));
  return recount();
}

Result<std::shared_ptr<device::Residence>> LanedExecutable::make_resident(
    const device::CoreSet& cores, device::Residency residency) {
  return LanedResidence::make(shared_from_this(), cores, residency);
}

Result<device::Executable::Precompiled> LanedExecutable::export_precompiled() const {
  return program_->export_precompiled();
}

}  // namespace corelane::lanes
