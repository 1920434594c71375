/// A device and a queue that pass each call on, for wrappers: override what differs. Each holds the
/// one below and keeps it alive. Any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "corelane/device/device.h"

namespace corelane::device {

/// Passes on to the device below; executables, queues and buffers are those of it.
class ForwardingDevice : public Device {
 public:
  /// `inner` is not null.
  explicit ForwardingDevice(std::shared_ptr<Device> inner) : inner_(std::move(inner)) {}

  const DeviceInfo& info() const noexcept override { return inner_->info(); }
  Health health() const noexcept override { return inner_->health(); }
  const std::shared_ptr<Clock>& clock() const noexcept override { return inner_->clock(); }
  MemoryFigures memory() const override { return inner_->memory(); }
  DeviceCounters counters() const override { return inner_->counters(); }
  std::vector<Holding> holdings() const override { return inner_->holdings(); }
  Result<std::shared_ptr<Buffer>> create_buffer(std::size_t size,
                                                const BufferOptions& options) override {
    return inner_->create_buffer(size, options);
  }
  Result<std::shared_ptr<Buffer>> import_fd(int fd, std::size_t size, std::size_t offset) override {
    return inner_->import_fd(fd, size, offset);
  }
  Result<std::shared_ptr<Buffer>> import_user(void* data, std::size_t size) override {
    return inner_->import_user(data, size);
  }
  Result<std::shared_ptr<Executable>> prepare(const Image& image,
                                              const PrepareOptions& options) override {
    return inner_->prepare(image, options);
  }
  Result<std::shared_ptr<Queue>> make_queue(const QueueOptions& options) override {
    return inner_->make_queue(options);
  }
  Status reset(const CoreSet& cores) override { return inner_->reset(cores); }
  Status set_arbiter(std::shared_ptr<const Arbiter> arbiter) override {
    return inner_->set_arbiter(std::move(arbiter));
  }
  Result<std::shared_ptr<Observation>> observe(ObserverOptions options) override {
    return inner_->observe(std::move(options));
  }
  Status set_trace(std::size_t records_per_core) override {
    return inner_->set_trace(records_per_core);
  }
  Result<std::vector<JobRecord>> read_trace() const override { return inner_->read_trace(); }

 protected:
  const std::shared_ptr<Device>& inner() const noexcept { return inner_; }

 private:
  const std::shared_ptr<Device> inner_;
};

/// Passes on to the queue below.
class ForwardingQueue : public Queue {
 public:
  /// `device` is the one that made `inner`. Neither is null.
  ForwardingQueue(std::shared_ptr<Queue> inner, std::shared_ptr<Device> device)
      : inner_(std::move(inner)), device_(std::move(device)) {}

  std::uint64_t id() const noexcept override { return inner_->id(); }
  Result<std::shared_ptr<Completion>> submit(const Submission& job) override {
    return inner_->submit(job);
  }
  Status run(const Submission& job, JobRecord* record) override { return inner_->run(job, record); }
  std::size_t depth() const override { return inner_->depth(); }
  bool drain(TimePoint until) override { return inner_->drain(until); }

 protected:
  Queue& inner() const noexcept { return *inner_; }
  const Device& device() const noexcept { return *device_; }

 private:
  const std::shared_ptr<Queue> inner_;
  const std::shared_ptr<Device> device_;
};

}  // namespace corelane::device
