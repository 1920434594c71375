/// What tests of failures share: faults in a given order, and a log of a device's events.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "corelane/device/device.h"
#include "corelane/device/fault.h"

namespace corelane::device {

/// Faults by order of runs; none after the last. Any thread.
class ListedFaults final : public FaultPoint {
 public:
  explicit ListedFaults(std::vector<Fault> faults) : faults_(std::move(faults)) {}
  Fault at_run(std::uint64_t, std::uint64_t) override {
    const std::size_t at = next_++;
    return at < faults_.size() ? faults_[at] : Fault::kNone;
  }
  Duration slow_by() const override { return std::chrono::milliseconds(2); }
  Duration lost_for() const override { return std::chrono::milliseconds(30); }
  /// Until `n` runs have asked.
  void await(std::size_t n) const {
    while (next_ < n) std::this_thread::yield();
  }

 private:
  const std::vector<Fault> faults_;
  std::atomic<std::size_t> next_{0};
};

/// Collects the events of devices; any thread.
class EventLog {
 public:
  /// From now on those of this device, instead of one before.
  Status watch(Device& device) {
    ObserverOptions options;
    options.on_event = [this](const Event& event) {
      std::lock_guard guard(mutex_);
      (event.kind == EventKind::kLog ? lines_ : events_).push_back(event);
    };
    CORELANE_ASSIGN(observation_, device.observe(std::move(options)));
    return {};
  }
  /// All but the lines of the log.
  std::vector<Event> all() {
    observation_->flush();
    std::lock_guard guard(mutex_);
    return events_;
  }
  std::vector<Event> lines() {
    observation_->flush();
    std::lock_guard guard(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::vector<Event> events_;
  std::vector<Event> lines_;
  std::shared_ptr<Observation> observation_;
};

}  // namespace corelane::device
