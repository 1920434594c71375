/// Several devices as one, which runs chains of parts. See corelane/runtime/chain_devices.h.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "corelane/device/device.h"
#include "runtime/chain/chain_observers.h"
#include "runtime/chain/chain_routes.h"

namespace corelane::runtime {

/// What the jobs of a chain have in common with its device; they may outlive it.
struct ChainLedger {
  explicit ChainLedger(const std::shared_ptr<Clock>& clock)
      : observers(std::make_shared<ChainObservers>(clock)) {}
  std::atomic<std::uint64_t> submitted{0}, completed{0}, failed{0}, abandoned{0};
  std::atomic<std::uint64_t> jobs{0};
  const std::shared_ptr<ChainObservers> observers;
};

class ChainDevice final : public device::Device, public std::enable_shared_from_this<ChainDevice> {
 public:
  /// Checked by chain_devices().
  explicit ChainDevice(std::vector<std::shared_ptr<device::Device>> places);

  /// Its devices, each once, with their cores among those of all.
  const std::vector<ChainObservers::Source>& members() const noexcept { return members_; }
  std::size_t parts() const noexcept { return member_of_.size(); }
  /// Whose member runs part `part`.
  std::size_t member_of(std::size_t part) const noexcept { return member_of_[part]; }
  const std::shared_ptr<device::Device>& device_of(std::size_t part) const noexcept {
    return members_[member_of_[part]].device;
  }
  const std::shared_ptr<ChainLedger>& ledger() const noexcept { return ledger_; }

  /// As prepare(), of the parts. kForeignImage, kInvalidArgument (another number of parts), and
  /// what the devices refuse them with.
  Result<std::shared_ptr<device::Executable>> prepare_chain(const ChainImage& image,
                                                            const device::PrepareOptions& options);

  const device::DeviceInfo& info() const noexcept override { return info_; }
  device::Health health() const noexcept override;
  const std::shared_ptr<Clock>& clock() const noexcept override;
  device::MemoryFigures memory() const override;
  device::DeviceCounters counters() const override;
  std::vector<device::Holding> holdings() const override;
  Result<std::shared_ptr<device::Buffer>> create_buffer(
      std::size_t size, const device::BufferOptions& options) override;
  Result<std::shared_ptr<device::Buffer>> import_fd(int fd, std::size_t size,
                                                    std::size_t offset) override;
  Result<std::shared_ptr<device::Buffer>> import_user(void* data, std::size_t size) override;
  /// kForeignImage: see prepare_chain().
  Result<std::shared_ptr<device::Executable>> prepare(
      const device::Image& image, const device::PrepareOptions& options) override;
  Result<std::shared_ptr<device::Queue>> make_queue(const device::QueueOptions& options) override;
  Status reset(const device::CoreSet& cores) override;
  Status set_arbiter(std::shared_ptr<const device::Arbiter> arbiter) override;
  Result<std::shared_ptr<device::Observation>> observe(device::ObserverOptions options) override;
  Status set_trace(std::size_t records_per_core) override;
  Result<std::vector<device::JobRecord>> read_trace() const override;

 private:
  std::vector<ChainObservers::Source> members_;
  std::vector<std::size_t> member_of_;  ///< By part.
  device::DeviceInfo info_;
  const std::shared_ptr<ChainLedger> ledger_;
  std::atomic<std::uint64_t> queues_{0};
};

}  // namespace corelane::runtime
