/// The Device over a LaneEngine: see lane_engine.h for what a driver supplies and
/// lane_scheduler.h for how jobs run.
#pragma once

#include <atomic>
#include <memory>
#include <set>

#include "base/fork.h"
#include "base/sync.h"
#include "corelane/driver/lane_engine.h"
#include "lanes/lane_scheduler.h"
#include "lanes/resources/core_leases.h"
#include "lanes/resources/memory_ledger.h"
#include "lanes/resources/shared_program.h"

namespace corelane::lanes {

class LanedExecutable;

class LanedDevice final : public device::Device, public std::enable_shared_from_this<LanedDevice> {
 public:
  LanedDevice(device::DeviceInfo info, std::shared_ptr<device::LaneEngine> engine,
              const device::LaneOptions& options);
  ~LanedDevice() override;

  const device::DeviceInfo& info() const noexcept override { return info_; }
  device::Health health() const noexcept override { return scheduler_->health(); }
  const std::shared_ptr<Clock>& clock() const noexcept override { return scheduler_->clock(); }
  device::MemoryFigures memory() const override;
  device::DeviceCounters counters() const override { return scheduler_->counters(); }
  std::vector<device::Holding> holdings() const override { return scheduler_->holdings(); }
  Result<std::shared_ptr<device::Buffer>> create_buffer(
      std::size_t size, const device::BufferOptions& options) override;
  Result<std::shared_ptr<device::Buffer>> import_fd(int fd, std::size_t size,
                                                    std::size_t offset) override;
  Result<std::shared_ptr<device::Buffer>> import_user(void* data, std::size_t size) override;
  Result<std::shared_ptr<device::Executable>> prepare(
      const device::Image& image, const device::PrepareOptions& options) override;
  Result<std::shared_ptr<device::Queue>> make_queue(const device::QueueOptions& options) override;
  Status reset(const device::CoreSet& cores) override;
  Status set_arbiter(std::shared_ptr<const device::Arbiter> arbiter) override {
    return scheduler_->set_arbiter(std::move(arbiter));
  }
  Result<std::shared_ptr<device::Observation>> observe(device::ObserverOptions options) override;
  Status set_trace(std::size_t records) override { return scheduler_->set_trace(records); }
  Result<std::vector<device::JobRecord>> read_trace() const override {
    return scheduler_->read_trace();
  }

  LaneScheduler& scheduler() const noexcept { return *scheduler_; }
  MemoryLedger& ledger() const noexcept { return ledger_; }
  CoreLeases& leases() const noexcept { return leases_; }
  /// kWrongState in a forked child: the device's threads are the parent's.
  Status check_process() const {
    return fork_count() == made_in_ ? Status() : device_of_the_parent();
  }
  /// For those who watch from other processes, where leases are on and it is time; no lock is held.
  void publish_figures() const noexcept {
    if (leases_.on()) publish_shared_figures();
  }
  /// In the executable's destructor.
  void remove(const LanedExecutable* executable);

 private:
  void publish_shared_figures() const noexcept;
  Status device_of_the_parent() const;

  Result<std::shared_ptr<device::LaneProgram>> prepare_program(
      const device::Image& image, const device::PrepareOptions& options);
  Result<std::shared_ptr<SharedProgram>> program_of(const device::Image& image,
                                                    const device::PrepareOptions& options,
                                                    std::uint64_t generation);
  std::shared_ptr<device::Buffer> held(std::shared_ptr<device::Buffer> buffer, std::size_t counted);

  const device::DeviceInfo info_;
  const std::shared_ptr<device::LaneEngine> engine_;
  const std::shared_ptr<LaneScheduler> scheduler_;
  mutable MemoryLedger ledger_;
  mutable CoreLeases leases_;
  const std::uint64_t made_in_ = fork_count();
  std::atomic<std::size_t> buffer_bytes_{0};
  mutable Mutex executables_mutex_{LockRank::kLaneExecutables};
  std::set<const LanedExecutable*> executables_ CORELANE_GUARDED_BY(executables_mutex_);
  SharedPrograms programs_ CORELANE_GUARDED_BY(executables_mutex_);
};

}  // namespace corelane::lanes
