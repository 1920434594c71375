/// One observer: what waits to be delivered to it, and its delivery.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "base/sync.h"
#include "corelane/base/clock.h"

namespace corelane::dispatch {

/// When a delivery is to be arranged for what was just added.
enum class Delivery : std::uint8_t { kNone, kSoon, kNow };

/// What a DeliveryThread sees of a ring.
class Deliverable {
 public:
  virtual ~Deliverable() = default;
  /// Calls the observer with all that waits.
  virtual void deliver() = 0;
  /// No thread could be had: the next item asks for one again.
  virtual void not_arranged() = 0;
  /// Waits until what was added before is delivered or dropped by close(); false when `until` came
  /// first, in a call of this observer, and in a forked child.
  virtual bool flush(Clock& clock, TimePoint until) = 0;
};

/// Filled under its owner's lock, emptied by one thread. What comes while it is full, or while
/// there is no memory for it, is dropped and counted. Any thread.
template <class Item>
class DeliveryRing : public Deliverable {
 public:
  /// Must not throw; see run_callback(). Destroyed with no lock held.
  using Function = std::function<void(const Item&)>;

  /// The memory is taken here: add() is on the way of each job.
  DeliveryRing(std::size_t capacity, std::uint32_t one_in, Function call)
      : capacity_(capacity),
        one_in_(one_in),
        forks_(fork_count()),
        call_(std::make_shared<const Function>(std::move(call))) {
    waiting_.reserve(capacity_);
    spare_.reserve(capacity_);
  }

  /// Adds items, of which the first of each `one_in` is kept. They come in groups, since each
  /// delivery wakes a thread.
  template <class Given>
  Delivery add_sampled(Given&& item) {
    const MutexLock lock(mutex_);
    if (seen_++ % one_in_ != 0) return Delivery::kNone;
    return add(std::forward<Given>(item), false);
  }
  /// `now`: it is to be delivered at once.
  template <class Given>
  Delivery add_each(Given&& item, bool now) {
    const MutexLock lock(mutex_);
    return add(std::forward<Given>(item), now);
  }
  void not_arranged() override {
    const MutexLock lock(mutex_);
    arranged_ = Delivery::kNone;
  }
  /// The function is held here too: the observer may end its subscription in it.
  void deliver() override {
    MutexLock lock(mutex_);
    while (!waiting_.empty() && !closed()) {
      std::shared_ptr<const Function> call = call_;
      std::vector<Item> batch = std::exchange(waiting_, std::exchange(spare_, {}));
      delivering_ = true;
      thread_ = std::this_thread::get_id();
      lock.unlock();
      for (const Item& item : batch)
        if (!closed()) (*call)(item);
      const std::size_t count = batch.size();
      batch.clear();
      call.reset();  // The last reference where it ended its subscription: not under the lock.
      lock.lock();
      spare_ = std::move(batch);
      done_ += count;
      delivering_ = false;
      delivered_.notify_all();
    }
    arranged_ = Delivery::kNone;
  }
  /// Nothing is delivered from here on; waits for the end of a call that runs, unless it is made in
  /// that call. In a forked child the thread that delivers is gone, and may hold the lock.
  void close() {
    closed_.store(true, std::memory_order_release);
    if (forks_ != fork_count()) return;
    std::shared_ptr<const Function> gone;  // Destroyed without the lock.
    MutexLock lock(mutex_);
    gone.swap(call_);
    delivered_.notify_all();
    while (delivering_ && thread_ != std::this_thread::get_id()) delivered_.wait(lock.native());
  }
  bool flush(Clock& clock, TimePoint until) override {
    if (forks_ != fork_count()) return false;
    MutexLock lock(mutex_);
    if (delivering_ && thread_ == std::this_thread::get_id()) return false;
    const std::uint64_t goal = added_;
    while (done_ < goal && !closed())
      if (!clock.wait_until(lock.native(), delivered_, until)) return done_ >= goal;
    return true;
  }
  std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  template <class Given>
  Delivery add(Given&& item, bool now) CORELANE_REQUIRES(mutex_) {
    if (waiting_.size() == capacity_) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return Delivery::kNone;
    }
    try {
      waiting_.emplace_back(std::forward<Given>(item));
    } catch (const std::bad_alloc&) {
      dropped_.fetch_add(1, std::memory_order_relaxed);  // What the item itself holds.
      return Delivery::kNone;
    }
    ++added_;
    const Delivery wanted =
        now || 2 * waiting_.size() >= capacity_ ? Delivery::kNow : Delivery::kSoon;
    if (wanted <= arranged_) return Delivery::kNone;
    arranged_ = wanted;
    return wanted;
  }

  const std::size_t capacity_;
  const std::uint32_t one_in_;
  const std::uint64_t forks_;
  std::atomic<bool> closed_{false};
  std::atomic<std::uint64_t> dropped_{0};

  Mutex mutex_{LockRank::kDeliveryRing};
  std::condition_variable delivered_;  ///< A delivery has ended.
  std::shared_ptr<const Function> call_ CORELANE_GUARDED_BY(mutex_);
  std::vector<Item> waiting_ CORELANE_GUARDED_BY(mutex_);
  std::vector<Item> spare_ CORELANE_GUARDED_BY(mutex_);  ///< Memory for what waits next.
  Delivery arranged_ CORELANE_GUARDED_BY(mutex_) = Delivery::kNone;
  bool delivering_ CORELANE_GUARDED_BY(mutex_) = false;
  std::thread::id thread_ CORELANE_GUARDED_BY(mutex_);
  std::uint64_t seen_ CORELANE_GUARDED_BY(mutex_) = 0;  ///< Items to choose from.
  std::uint64_t added_ CORELANE_GUARDED_BY(mutex_) = 0;
  std::uint64_t done_ CORELANE_GUARDED_BY(mutex_) = 0;  ///< Of those that were added.
};

}  // namespace corelane::dispatch
