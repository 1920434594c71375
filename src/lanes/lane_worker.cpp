// The threads of a LanedDevice: workers that run granted jobs, and threads that wait.

#include <algorithm>
#include <bit>

#include "base/thread.h"
#include "corelane/base/log.h"
#include "lanes/lane_scheduler.h"
#include "lanes/laned_bindings.h"

namespace corelane::lanes {
namespace {

/// The scheduler this thread works for.
thread_local const LaneScheduler* working_for = nullptr;

void pause_cpu() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

/// True when a thread may spin without taking a CPU from one that works.
bool LaneScheduler::may_spin_locked() const noexcept {
  const auto running =
      static_cast<unsigned>(std::popcount(busy_bits_.load(std::memory_order_relaxed)));
  const unsigned spinning = spinning_waiters_ + (spinning_ ? 1 : 0);
  return spin_ > Duration{} && running + spinning < cpus_ && cpus_ > 1 && !clock_->is_virtual();
}

void LaneScheduler::spin_for(const std::atomic<bool>& flag) const {
  const TimePoint until = clock_->now() + spin_;
  do {
    for (int i = 0; i < 32; ++i) {
      if (flag.load(std::memory_order_acquire)) return;
      pause_cpu();
    }
  } while (clock_->now() < until);
}

std::shared_ptr<LanedJob> LaneScheduler::pop_ready_locked() {
  std::shared_ptr<LanedJob> job = std::move(ready_.front());
  ready_.pop_front();
  ready_count_.store(ready_.size(), std::memory_order_release);
  return job;
}

bool LaneScheduler::take_ready_locked(LanedJob& job) {
  const auto place = std::find_if(ready_.begin(), ready_.end(),
                                  [&](const auto& other) { return other.get() == &job; });
  if (place == ready_.end()) return false;
  ready_.erase(place);
  ready_count_.store(ready_.size(), std::memory_order_release);
  return true;
}

/// Sees to it that each granted job has somebody who will run it: a worker that is about to look, a
/// thread that waits for it, a sleeping worker, or a new one.
void LaneScheduler::wake_workers_locked(Aftermath& after) {
  std::size_t coming = claimed_ + (spinning_ ? 1 : 0);
  for (const std::shared_ptr<LanedJob>& job : ready_) {
    if (job->waiters_ > 0 && !job->has_deadline()) {
      after.offered.push_back(job);
    } else if (coming > 0) {
      --coming;
    } else if (!idle_.empty()) {
      Worker* worker = idle_.back();
      idle_.pop_back();
      worker->notified = true;
      ++claimed_;
      after.woken.push_back(worker);
    } else if (Worker* worker = new_worker_locked()) {
      worker->notified = true;
      ++claimed_;
    } else if (live_workers_ == 0) {
      complain_locked(fmt::format("job {} waits for a thread; the next call tries again", job->id));
    }
  }
}

/// A thread, or none where the system gives none.
std::thread LaneScheduler::new_thread_locked(const char* name, std::function<void()> body) const {
  auto thread = start_thread(name, std::move(body));
  if (thread) return *std::move(thread);
  complain_locked(thread.error().message());
  return {};
}

/// Null when the system gives no thread.
LaneScheduler::Worker* LaneScheduler::new_worker_locked() {
  auto slot = std::find_if(workers_.begin(), workers_.end(),
                           [](const auto& worker) { return worker->finished; });
  if (slot == workers_.end()) slot = workers_.insert(workers_.end(), std::make_unique<Worker>());
  Worker& worker = **slot;
  if (worker.thread.joinable()) worker.thread.join();
  worker.thread = new_thread_locked("corelane-lane",
                                    [keep = shared_from_this(), &worker] { keep->work(worker); });
  worker.finished = !worker.thread.joinable();
  if (worker.finished) return nullptr;
  ++live_workers_;
  return &worker;
}

bool LaneScheduler::start_notifier_locked() {
  if (stop_.load(std::memory_order_relaxed)) return false;
  notifier_ = new_thread_locked("corelane-notify", [keep = shared_from_this()] { keep->notify(); });
  return notifier_.joinable();
}

/// The notifier's thread.
void LaneScheduler::notify() {
  working_for = this;
  Lock lock(mutex_);
  for (;;) {
    while (deferred_.empty() && !stop_.load(std::memory_order_relaxed))
      deferred_changed_.wait(lock);
    if (deferred_.empty()) return;
    Aftermath after = std::move(deferred_.front());
    deferred_.pop_front();
    lock.unlock();
    tell(after);
    after = {};  // May hold the last reference to the device.
    lock.lock();
  }
}

void LaneScheduler::work(Worker& self) {
  working_for = this;
  Lock lock(mutex_);
  --claimed_;
  self.notified = false;
  while (true) {
    if (!ready_.empty()) {
      std::shared_ptr<LanedJob> job = pop_ready_locked();
      start_locked(*job, clock_->now());
      lock.unlock();
      const bool claims = execute(job, true);
      job.reset();  // May be the last reference to the device.
      lock.lock();
      if (claims) --claimed_;
      continue;
    }
    if (stop_.load(std::memory_order_relaxed) || live_workers_ > lanes_.size() + zombies_) break;
    if (worker_spins_locked(lock)) continue;
    idle_.push_back(&self);
    while (!self.notified && !stop_.load(std::memory_order_relaxed)) self.wake.wait(lock);
    if (self.notified) {
      self.notified = false;
      --claimed_;
    } else {
      std::erase(idle_, &self);
    }
  }
  --live_workers_;
  self.finished = true;
}

/// Spins for the next job when this thread is the one that may; true when there is one.
bool LaneScheduler::worker_spins_locked(Lock& lock) {
  if (spinning_ || !may_spin_locked()) return false;
  spinning_ = true;
  lock.unlock();
  const TimePoint until = clock_->now() + spin_;
  bool found = false;
  do {
    for (int i = 0; i < 32 && !found; ++i) {
      found = ready_count_.load(std::memory_order_acquire) != 0 ||
              stop_.load(std::memory_order_relaxed);
      pause_cpu();
    }
  } while (!found && clock_->now() < until);
  lock.lock();
  spinning_ = false;
  return !ready_.empty();
}

bool LaneScheduler::wait(LanedJob& job, TimePoint until) {
  if (job.done()) return true;
  // Who waits for a while only must not be held up by the job itself.
  const bool helps = until == kNever;
  if (event_driven_) drain_starts(true);
  bool spun = false;
  Lock lock(mutex_);
  while (!job.done()) {
    if (helps && job.state_ == JobState::kGranted && !job.has_deadline() &&
        take_ready_locked(job)) {
      const std::shared_ptr<LanedJob> keep = job.shared_from_this();
      start_locked(job, clock_->now());
      lock.unlock();
      execute(keep, false);
      lock.lock();
      continue;
    }
    if (job.state_ == JobState::kRunning && !spun && !event_driven_ && may_spin_locked()) {
      spun = true;
      ++spinning_waiters_;
      lock.unlock();
      spin_for(job.done_);
      lock.lock();
      --spinning_waiters_;
      continue;
    }
    if (helps) ++job.waiters_;
    const bool more = clock_->wait_until(lock, job.changed_, until);
    if (helps) --job.waiters_;
    if (!more) return job.done();
  }
  return true;
}

bool LaneScheduler::wait_released(LanedJob& job, TimePoint until) {
  if (job.released()) return true;
  if (!wait(job, until)) return false;
  Lock lock(mutex_);
  while (!job.released())
    if (!clock_->wait_until(lock, job.changed_, until)) return job.released();
  return true;
}

void LaneScheduler::shutdown() {
  std::vector<std::thread> threads;
  const bool from_worker = working_for == this;
  {
    Lock lock(mutex_);
    stop_.store(true, std::memory_order_relaxed);
    for (const auto& worker : workers_) {
      worker->wake.notify_all();
      if (worker->thread.joinable()) threads.push_back(std::move(worker->thread));
    }
    deferred_changed_.notify_all();
    if (notifier_.joinable()) threads.push_back(std::move(notifier_));
  }
  for (std::thread& thread : threads) {
    if (from_worker)
      thread.detach();
    else
      thread.join();
  }
}

}  // namespace corelane::lanes
