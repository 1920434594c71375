// What a scheduler tells: observers, the trace, figures, cores that are held, and runs that take
// long.
#include <utility>

#include "corelane/base/log.h"
#include "lanes/lane_job.h"
#include "lanes/lane_scheduler.h"

namespace corelane::lanes {

void LaneScheduler::add_observer(std::shared_ptr<ObserverRing> observer) {
  MutexLock lock(mutex_);
  table_.records().add_observer(std::move(observer));
}

void LaneScheduler::remove_observer(const std::shared_ptr<ObserverRing>& observer) {
  {
    MutexLock lock(mutex_);
    table_.records().remove_observer(observer.get());
  }
  observer->close();
}

bool LaneScheduler::flush(const std::shared_ptr<ObserverRing>& observer, TimePoint until) {
  return observing_->flush(observer, until);
}

Status LaneScheduler::set_trace(std::size_t records_per_core) {
  MutexLock lock(mutex_);
  table_.records().start_trace(records_per_core);
  return {};
}

Result<std::vector<device::JobRecord>> LaneScheduler::read_trace() const {
  // Copied under the lock, sorted without it.
  const JobTrace trace = [&] {
    MutexLock lock(mutex_);
    return table_.records().trace();
  }();
  return trace.read();
}

device::DeviceCounters LaneScheduler::counters() const {
  MutexLock lock(mutex_);
  return table_.counters();
}

std::vector<device::LeaseFigures> LaneScheduler::lease_figures() const {
  MutexLock lock(mutex_);
  return table_.lease_figures();
}

std::vector<device::Holding> LaneScheduler::holdings() const {
  MutexLock lock(mutex_);
  return table_.holdings();
}

device::Health LaneScheduler::health() const {
  MutexLock lock(mutex_);
  if (table_.loss().lost()) return device::Health::kLost;
  return table_.abandoned_count() == 0 ? device::Health::kGood : device::Health::kDegraded;
}

Result<std::uint64_t> LaneScheduler::choose_cores(const LanedExecutable* executable,
                                                  const device::CoreSet& cores,
                                                  device::Residency residency,
                                                  std::uint64_t besides) const {
  MutexLock lock(mutex_);
  return table_.cores().choose(cores, executable, residency, besides);
}

bool LaneScheduler::resides(std::uint64_t residence, const LanedExecutable* executable) const {
  MutexLock lock(mutex_);
  return table_.cores().resides(residence, executable);
}

void LaneScheduler::watch_until(TimePoint due) noexcept {
  watching_ = due != kNever;
  if (!watching_) return;
  try {
    watch_timer_ = clock_->call_at(due, [weak = weak_from_this()] {
      if (const auto alive = weak.lock()) alive->tell_long_runs();
    });
  } catch (...) {
    watching_ = false;  // There is no memory for a timer: the next start tries again.
  }
}

/// On the clock's thread.
void LaneScheduler::tell_long_runs() {
  const TimePoint now = clock_->now();
  SureVector<std::string> lines;
  {
    MutexLock lock(mutex_);
    lines = table_.tell_long_runs(now);
    watch_until(table_.next_long_run());
  }
  for (const std::string& line : lines) log::warn("device", "{}", line);
}

}  // namespace corelane::lanes
