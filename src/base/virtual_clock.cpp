#include <atomic>
#include <list>
#include <vector>

#include "base/guard.h"
#include "base/sync.h"
#include "base/timer_queue.h"
#include "corelane/base/clock.h"

namespace corelane {

namespace {

/// One thread inside wait_until. It lives on that thread's stack; `pins` keeps the thread from
/// leaving while an advancing thread still uses its mutex and condition variable.
struct Waiter {
  std::mutex* mutex;
  std::condition_variable* cv;
  TimePoint until;
  int pins = 0;
};

}  // namespace

struct VirtualClock::Impl {
  Mutex mutex{LockRank::kClock};
  std::condition_variable unpinned;
  std::atomic<TimePoint> now{TimePoint{}};
  TimerQueue timers CORELANE_GUARDED_BY(mutex);
  std::list<Waiter*> waiters CORELANE_GUARDED_BY(mutex);

  /// Sets the time (never backwards) and wakes the threads whose time has come. `mutex` is
  /// released meanwhile: a waiter registers with its own mutex held, so taking that mutex under
  /// the clock's could deadlock.
  void move_to(TimePoint t) CORELANE_REQUIRES(mutex) {
    if (t > now.load()) now.store(t);
    std::vector<Waiter*> due;
    for (Waiter* w : waiters) {
      if (w->until <= now.load()) {
        ++w->pins;
        due.push_back(w);
      }
    }
    if (due.empty()) return;
    mutex.unlock();
    for (Waiter* w : due) {
      // The waiter registered under its mutex and gives it up by waiting: once this thread had that
      // mutex, the waiter waits (or has left the wait), and the notification is not lost.
      { std::lock_guard passed(*w->mutex); }
      w->cv->notify_all();
    }
    mutex.lock();
    for (Waiter* w : due) --w->pins;
    unpinned.notify_all();
  }

  /// Runs the next timer that falls due by `limit`; false when there is none. A timer set for
  /// kNever does not run.
  bool run_next(TimePoint limit) {
    MutexLock lock(mutex);
    const TimePoint next = timers.next();
    if (next == kNever || next > limit) return false;
    TimerQueue::Call call = timers.pop();
    move_to(next);
    lock.unlock();
    run_callback("clock", "a timer's call", call);
    return true;
  }
};

VirtualClock::VirtualClock() : impl_(std::make_unique<Impl>()) {}
VirtualClock::~VirtualClock() = default;

TimePoint VirtualClock::now() const noexcept { return impl_->now.load(); }

bool VirtualClock::wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                              TimePoint until) {
  if (until == kNever) {
    cv.wait(lock);
    return true;
  }
  Waiter waiter{lock.mutex(), &cv, until};
  std::list<Waiter*>::iterator place;
  {
    const MutexLock guard(impl_->mutex);
    if (impl_->now.load() >= until) return false;
    place = impl_->waiters.insert(impl_->waiters.end(), &waiter);
  }
  cv.wait(lock);
  // An advancing thread that pinned this waiter may want the caller's mutex, so it is released
  // until the waiter has left. For the caller this is part of the wait.
  lock.unlock();
  {
    MutexLock guard(impl_->mutex);
    while (waiter.pins != 0) impl_->unpinned.wait(guard.native());
    impl_->waiters.erase(place);
  }
  lock.lock();
  return now() < until;
}

Clock::TimerId VirtualClock::call_at(TimePoint when, std::function<void()> f) {
  const MutexLock lock(impl_->mutex);
  return impl_->timers.add(when, std::move(f));
}

bool VirtualClock::cancel(TimerId id) {
  TimerQueue::Call removed;  // Destroyed after the lock: its captures may call the clock.
  const MutexLock lock(impl_->mutex);
  return impl_->timers.remove(id, removed);
}

void VirtualClock::advance_to(TimePoint t) {
  while (impl_->run_next(t)) {
  }
  const MutexLock lock(impl_->mutex);
  impl_->move_to(t);
}

std::size_t VirtualClock::run_all(std::size_t limit) {
  std::size_t count = 0;
  while (count < limit && impl_->run_next(kNever)) ++count;
  return count;
}

TimePoint VirtualClock::next_timer() const {
  const MutexLock lock(impl_->mutex);
  return impl_->timers.next();
}

}  // namespace corelane
