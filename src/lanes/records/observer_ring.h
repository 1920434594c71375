/// One observer of a device: what it wants, what waits to be delivered to it, and its delivery.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <thread>
#include <variant>
#include <vector>

#include "base/sync.h"
#include "corelane/device/observer.h"

namespace corelane::lanes {

/// Filled under the scheduler's lock, emptied by the device's thread for observers. Any thread.
class ObserverRing {
 public:
  /// When a delivery is to be arranged for what was just noted.
  enum class Delivery : std::uint8_t { kNone, kSoon, kNow };

  /// The memory is taken here: note() is on the way of each job.
  explicit ObserverRing(device::ObserverOptions options);

  Delivery note(const device::Event& event);
  Delivery note(const device::JobRecord& record);
  /// No thread could be had: the next note() asks for one again.
  void not_arranged();
  /// Calls the observer with all that waits.
  void deliver();
  /// See device::Observation. In a forked child the thread that delivers is gone.
  void close();
  bool flush(Clock& clock, TimePoint until);
  std::uint64_t dropped() const;

 private:
  using Item = std::variant<device::Event, device::JobRecord>;
  using Options = std::shared_ptr<const device::ObserverOptions>;
  Delivery add(Item item, bool at_once);
  static void call(const device::ObserverOptions& options, const Item& item);

  const std::uint64_t queue_;
  const std::uint32_t one_in_;
  const std::size_t capacity_;
  const bool wants_events_;
  const bool wants_records_;
  const std::uint64_t forks_;
  std::atomic<bool> closed_{false};

  mutable Mutex mutex_{LockRank::kLaneObserver};
  std::condition_variable delivered_;  ///< A delivery has ended.
  Options options_ CORELANE_GUARDED_BY(mutex_);
  std::vector<Item> waiting_ CORELANE_GUARDED_BY(mutex_);
  std::vector<Item> spare_ CORELANE_GUARDED_BY(mutex_);  ///< Memory for what waits next.
  Delivery arranged_ CORELANE_GUARDED_BY(mutex_) = Delivery::kNone;
  bool delivering_ CORELANE_GUARDED_BY(mutex_) = false;
  std::thread::id thread_ CORELANE_GUARDED_BY(mutex_);
  std::uint64_t seen_ CORELANE_GUARDED_BY(mutex_) = 0;  ///< Records that passed the filter.
  std::uint64_t added_ CORELANE_GUARDED_BY(mutex_) = 0;
  std::uint64_t done_ CORELANE_GUARDED_BY(mutex_) = 0;  ///< Of those that were added.
  std::uint64_t dropped_ CORELANE_GUARDED_BY(mutex_) = 0;
};

}  // namespace corelane::lanes
