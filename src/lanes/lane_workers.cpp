#include "lanes/lane_workers.h"

#include <algorithm>
#include <new>

#include "base/process/cpus.h"
#include "lanes/aftermath.h"

namespace corelane::lanes {

LaneWorkers::LaneWorkers(std::size_t cores, const Clock& clock, Duration spin, Start start)
    : cores_(cores),
      cpus_(process_cpus()),
      // With one CPU a spinning thread keeps the one from running that it waits for.
      spins_(spin > Duration{} && cpus_ > 1 && !clock.is_virtual()),
      start_(std::move(start)) {}

void LaneWorkers::call(std::size_t needed, Aftermath& after) {
  while (coming_ < needed) {
    if (!idle_.empty()) {
      // The one that slept last: its stack is still in the caches.
      Worker* worker = idle_.back();
      idle_.pop_back();
      worker->called = true;
      after->woken.push_back(&worker->wake);
    } else if (start(after) == nullptr) {
      if (none())
        after->complaints.push_back(
            text_or_none([] { return std::string("there is no thread for a job, which ends"); }));
      return;
    }
    ++coming_;
  }
}

LaneWorkers::Worker* LaneWorkers::start(Aftermath& after) noexcept {
  try {
    auto place = std::find_if(workers_.begin(), workers_.end(),
                              [](const auto& worker) { return worker->ended; });
    if (place == workers_.end()) place = workers_.insert(place, std::make_unique<Worker>());
    Worker& worker = **place;
    // It has ended under the lock: nothing is left of it but its return.
    if (worker.thread.joinable()) worker.thread.join();
    worker.thread = start_(worker, after);
    worker.ended = !worker.thread.joinable();
    if (worker.ended) return nullptr;
    ++live_;
    return &worker;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void LaneWorkers::sleep(Worker& self, MutexLock& lock) {
  idle_.push_back(&self);
  // A wake-up without `called` is spurious.
  while (!self.called && !stop_) self.wake.wait(lock.native());
  if (self.called) {
    self.called = false;
    looks();
  } else {
    // Stopped while it slept: nobody may call it any more.
    std::erase(idle_, &self);
  }
}

void LaneWorkers::ended(Worker& self) noexcept {
  --live_;
  self.ended = true;
}

/// Each busy core, and each thread that spins, has a CPU; one must be left for the others.
bool LaneWorkers::may_spin(std::size_t busy_cores) const noexcept {
  return spins_ && busy_cores + spinning_waiters_ + (worker_spins_ ? 1 : 0) < cpus_;
}

bool LaneWorkers::begin_spin(std::size_t busy_cores) noexcept {
  if (worker_spins_ || !may_spin(busy_cores)) return false;
  worker_spins_ = true;
  comes();
  return true;
}

void LaneWorkers::end_spin() noexcept {
  worker_spins_ = false;
  looks();
}

/// Workers take this lock once more to end, so the caller must not join them under it.
SureVector<std::thread> LaneWorkers::stop() {
  stop_ = true;
  SureVector<std::thread> threads;
  for (const auto& worker : workers_) {
    worker->wake.notify_all();
    if (worker->thread.joinable()) threads.push_back(std::move(worker->thread));
  }
  return threads;
}

}  // namespace corelane::lanes
