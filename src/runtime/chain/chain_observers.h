/// Who watches a chain of devices: the events of all of them, and the records of its jobs, in one
/// thread.
#pragma once

#include <atomic>
#include <memory>
#include <variant>
#include <vector>

#include "base/sync.h"
#include "corelane/device/observer.h"
#include "dispatch/delivery_thread.h"
#include "runtime/chain/chain_cores.h"

namespace corelane::device {
class Device;
}

namespace corelane::runtime {

/// The observers of one chain; observations share it. Any thread.
class ChainObservers final : public std::enable_shared_from_this<ChainObservers> {
 public:
  explicit ChainObservers(const std::shared_ptr<Clock>& clock);
  /// Lets the thread end. In a forked child it is not there, and may hold its lock.
  ~ChainObservers();
  ChainObservers(const ChainObservers&) = delete;
  ChainObservers& operator=(const ChainObservers&) = delete;

  /// A device of the chain, and its cores among those of all.
  struct Source {
    std::shared_ptr<device::Device> device;
    CoreSpan cores;
  };
  /// See device::Device::observe. `chain` is kept alive by the observation.
  Result<std::shared_ptr<device::Observation>> observe(device::ObserverOptions options,
                                                       const std::vector<Source>& sources,
                                                       std::shared_ptr<device::Device> chain);
  /// Someone wants records: a job's is worth making.
  bool wants_records() const noexcept { return records_.load(std::memory_order_relaxed); }
  /// A job of the chain has ended.
  void note(const device::JobRecord& record);

 private:
  using Ring = dispatch::DeliveryRing<std::variant<device::Event, device::JobRecord>>;
  struct Watcher {
    std::shared_ptr<Ring> ring;
    std::uint64_t queue = 0;
  };
  using Watchers = std::vector<Watcher>;
  class Observer;

  Status watch(const Source& source, bool group_events, const std::shared_ptr<Ring>& ring,
               Observer& observer);
  void remove(const std::shared_ptr<Ring>& ring);

  const std::uint64_t process_;
  const std::shared_ptr<dispatch::DeliveryThread> thread_;
  std::atomic<bool> records_{false};
  mutable Mutex mutex_{LockRank::kLeaf};
  /// Who watches records. Replaced, not changed.
  std::shared_ptr<const Watchers> watchers_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace corelane::runtime
