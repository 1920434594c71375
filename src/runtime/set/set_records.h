/// The observers of a set's inferences.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/sync.h"
#include "corelane/device/observer.h"
#include "corelane/runtime/set_record.h"
#include "dispatch/delivery_thread.h"

namespace corelane::runtime {

/// The observers of one set; observations share it with the set. Any thread.
class SetRecords final : public std::enable_shared_from_this<SetRecords> {
 public:
  explicit SetRecords(const std::shared_ptr<Clock>& clock);
  /// Lets the thread end. In a forked child it is not there, and may hold its lock.
  ~SetRecords();
  SetRecords(const SetRecords&) = delete;
  SetRecords& operator=(const SetRecords&) = delete;

  /// False: nobody observes, and nothing needs to be stamped.
  bool on() const noexcept { return on_.load(std::memory_order_relaxed); }
  /// See InferenceSet::observe.
  Result<std::shared_ptr<device::Observation>> observe(SetObserverOptions options);
  /// When an observer wants a record.
  enum class When : std::uint8_t { kCompleted, kCollected };
  /// To each observer that wants it then. The set's lock is held, so all get the same order.
  void note(const SetRecord& record, When when);

 private:
  using Ring = dispatch::DeliveryRing<SetRecord>;
  struct Watch {
    std::shared_ptr<Ring> ring;
    When when;
  };
  using Rings = std::vector<Watch>;
  class Observer;

  void remove(const std::shared_ptr<Ring>& ring);
  std::shared_ptr<const Rings> rings() const;

  const std::uint64_t process_;
  const std::shared_ptr<dispatch::DeliveryThread> thread_;
  std::atomic<bool> on_{false};
  mutable Mutex mutex_{LockRank::kLeaf};
  std::shared_ptr<const Rings> rings_ CORELANE_GUARDED_BY(mutex_);  ///< Replaced, not changed.
};

}  // namespace corelane::runtime
