/// An executable of a LanedDevice: the engine's program, its figures, and its residency.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "corelane/driver/lane_engine.h"
#include "lanes/resources/device_loss.h"
#include "lanes/resources/shared_program.h"

namespace corelane::lanes {

class LanedDevice;
class MemoryLedger;

class LanedExecutable final : public device::Executable,
                              public std::enable_shared_from_this<LanedExecutable> {
 public:
  /// `generation`: that of the LaneTable before the program was made. `current`: that of now.
  LanedExecutable(std::shared_ptr<LanedDevice> device, std::shared_ptr<SharedProgram> program,
                  bool profiled, std::uint64_t generation,
                  std::shared_ptr<const Generation> current, std::string name);
  ~LanedExecutable() override;

  const std::vector<TensorDesc>& inputs() const noexcept override { return program().inputs(); }
  const std::vector<TensorDesc>& outputs() const noexcept override { return program().outputs(); }
  device::Placement placement() const noexcept override { return program().placement(); }
  bool from_precompiled() const noexcept override { return program().from_precompiled(); }
  device::EngineChoice engine() const override { return program().engine(); }
  bool lost() const noexcept override { return generation_ != current_->load(); }
  device::MemoryFigures memory() const override;
  Result<std::shared_ptr<device::Bindings>> new_bindings() override;
  Result<std::shared_ptr<device::Residence>> make_resident(const device::CoreSet& cores,
                                                           device::Residency residency) override;
  Result<Precompiled> export_precompiled() const override;

  const LanedDevice* device() const noexcept { return device_.get(); }
  /// What is in use of the device's memory.
  MemoryLedger& ledger() const noexcept;
  /// Counts what the driver holds for this executable by now (SharedProgram::recount). Where that
  /// fails the caller drops what it has just made and counts again.
  Status recount() { return shared_->recount(); }
  /// Compiles what jobs on these cores need: on one of them, and where the device joins cores on
  /// all together. Fails like the driver, or with kOutOfMemory.
  Status reserve_for(std::uint64_t core_bits);
  /// It joins a residence that does not keep it alive.
  void note_joined() noexcept { joined_.store(true, std::memory_order_relaxed); }
  device::LaneProgram& program() const noexcept { return shared_->program(); }
  const SharedProgram& shared() const noexcept { return *shared_; }
  const std::string& name() const noexcept { return name_; }
  bool profiled() const noexcept { return profiled_; }
  std::uint64_t generation() const noexcept { return generation_; }
  /// Bytes its bindings allocated.
  std::atomic<std::size_t> buffer_bytes{0};
  /// Bindings alive, of all executables that share the program.
  std::atomic<std::size_t>& live_bindings() const noexcept { return shared_->live_bindings; }
  /// Running average of the time on the engine; guarded by the scheduler's lock.
  Duration average_run{};

 private:
  Status expect_copies(std::size_t requests) const;

  const std::shared_ptr<LanedDevice> device_;
  const std::shared_ptr<SharedProgram> shared_;
  const bool profiled_;
  const std::uint64_t generation_;
  const std::shared_ptr<const Generation> current_;
  const std::string name_;
  std::atomic<bool> joined_{false};
};

}  // namespace corelane::lanes
