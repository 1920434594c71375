#include "lanes/records/observer_ring.h"

#include <utility>

#include "base/fork.h"
#include "base/guard.h"

namespace corelane::lanes {

ObserverRing::ObserverRing(device::ObserverOptions options)
    : queue_(options.queue),
      one_in_(options.one_in),
      capacity_(options.ring),
      wants_events_(options.on_event != nullptr),
      wants_records_(options.on_record != nullptr),
      forks_(fork_count()),
      options_(std::make_shared<const device::ObserverOptions>(std::move(options))) {
  waiting_.reserve(capacity_);
  spare_.reserve(capacity_);
}

ObserverRing::Delivery ObserverRing::note(const device::Event& event) {
  return wants_events_ ? add(event, true) : Delivery::kNone;
}

ObserverRing::Delivery ObserverRing::note(const device::JobRecord& record) {
  if (!wants_records_ || (queue_ != 0 && queue_ != record.queue)) return Delivery::kNone;
  return add(record, false);
}

ObserverRing::Delivery ObserverRing::add(Item item, bool at_once) {
  const MutexLock lock(mutex_);
  if (!at_once && seen_++ % one_in_ != 0) return Delivery::kNone;
  if (waiting_.size() == capacity_) {
    ++dropped_;
    return Delivery::kNone;
  }
  waiting_.push_back(std::move(item));
  ++added_;
  // Records come in groups, since each delivery wakes a thread.
  const bool now = at_once || 2 * waiting_.size() >= capacity_;
  const Delivery wanted = now ? Delivery::kNow : Delivery::kSoon;
  if (wanted <= arranged_) return Delivery::kNone;
  arranged_ = wanted;
  return wanted;
}

void ObserverRing::not_arranged() {
  const MutexLock lock(mutex_);
  arranged_ = Delivery::kNone;
}

void ObserverRing::call(const device::ObserverOptions& options, const Item& item) {
  if (const auto* event = std::get_if<device::Event>(&item))
    run_callback("device", "an observer of events", options.on_event, *event);
  else
    run_callback("device", "an observer of records", options.on_record,
                 std::get<device::JobRecord>(item));
}

/// The functions are held here too: the observer may end its subscription in one of them.
void ObserverRing::deliver() {
  MutexLock lock(mutex_);
  while (!waiting_.empty() && !closed_.load(std::memory_order_relaxed)) {
    const Options options = options_;
    std::vector<Item> batch = std::exchange(waiting_, std::exchange(spare_, {}));
    delivering_ = true;
    thread_ = std::this_thread::get_id();
    lock.unlock();
    for (const Item& item : batch)
      if (!closed_.load(std::memory_order_acquire)) call(*options, item);
    const std::size_t count = batch.size();
    batch.clear();
    lock.lock();
    spare_ = std::move(batch);
    done_ += count;
    delivering_ = false;
    delivered_.notify_all();
  }
  arranged_ = Delivery::kNone;
}

void ObserverRing::close() {
  Options gone;  // Destroyed without the lock.
  closed_.store(true, std::memory_order_release);
  MutexLock lock(mutex_);
  gone.swap(options_);
  if (forks_ != fork_count()) return;
  while (delivering_ && thread_ != std::this_thread::get_id()) delivered_.wait(lock.native());
}

bool ObserverRing::flush(Clock& clock, TimePoint until) {
  MutexLock lock(mutex_);
  if (delivering_ && thread_ == std::this_thread::get_id()) return false;
  const std::uint64_t goal = added_;
  while (done_ < goal)
    if (!clock.wait_until(lock.native(), delivered_, until)) return done_ >= goal;
  return true;
}

std::uint64_t ObserverRing::dropped() const {
  const MutexLock lock(mutex_);
  return dropped_;
}

}  // namespace corelane::lanes
