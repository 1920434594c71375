/// The Device over a LaneEngine: see lane_engine.h for what a driver supplies and
/// lane_scheduler.h for how jobs run.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>

#include "corelane/driver/lane_engine.h"
#include "lanes/lane_scheduler.h"

namespace corelane::device {

class LanedExecutable;

class LanedDevice final : public Device, public std::enable_shared_from_this<LanedDevice> {
 public:
  LanedDevice(DeviceInfo info, std::shared_ptr<LaneEngine> engine, const LaneOptions& options);
  ~LanedDevice() override;

  const DeviceInfo& info() const noexcept override { return info_; }
  Health health() const noexcept override { return scheduler_->health(); }
  const std::shared_ptr<Clock>& clock() const noexcept override { return scheduler_->clock(); }
  MemoryFigures memory() const override;
  DeviceCounters counters() const override { return scheduler_->counters(); }
  Result<std::shared_ptr<Buffer>> create_buffer(std::size_t size,
                                                const BufferOptions& options) override;
  Result<std::shared_ptr<Buffer>> import_fd(int fd, std::size_t size, std::size_t offset) override;
  Result<std::shared_ptr<Buffer>> import_user(void* data, std::size_t size) override;
  Result<std::shared_ptr<Executable>> prepare(const Image& image,
                                              const PrepareOptions& options) override;
  Result<std::shared_ptr<Queue>> make_queue(const QueueOptions& options) override;
  Status reset(const CoreSet& cores) override;
  Status set_arbiter(std::shared_ptr<const Arbiter> arbiter) override;
  Status set_event_sink(EventSink sink) override;
  Status set_trace(std::size_t records_per_core) override;
  Result<std::vector<JobRecord>> read_trace() const override;

  LaneScheduler& scheduler() const noexcept { return *scheduler_; }
  bool event_driven() const noexcept { return event_driven_; }
  void add(const LanedExecutable* executable);
  void remove(const LanedExecutable* executable);

 private:
  std::shared_ptr<Buffer> held(std::shared_ptr<Buffer> buffer, std::size_t counted);

  const DeviceInfo info_;
  const std::shared_ptr<LaneEngine> engine_;
  const bool event_driven_;
  const std::shared_ptr<LaneScheduler> scheduler_;
  std::atomic<std::size_t> buffer_bytes_{0};
  mutable std::mutex executables_mutex_;
  std::set<const LanedExecutable*> executables_;
};

}  // namespace corelane::device
