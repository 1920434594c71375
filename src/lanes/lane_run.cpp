// Calling the engine: in a worker, in the thread that waits, or by starting it on the clock.
#include <bit>
#include <utility>

#include "corelane/base/log.h"
#include "lanes/lane_scheduler.h"
#include "lanes/laned_bindings.h"
#include "lanes/laned_executable.h"

namespace corelane::lanes {
namespace {

/// The scheduler whose starts this thread is draining further up its stack.
thread_local const LaneScheduler* draining = nullptr;

Status crash_status(const LaneOccupant& occupant) {
  return error(Code::kDeviceReset, "core set '{}' crashed while it ran job {} and was reset",
               device::CoreSet::mask(occupant.core_bits).to_string(), occupant.id);
}

/// What the injected fault of a test is; none when it cannot say.
device::Fault fault_at(device::FaultPoint* point, const LaneOccupant& occupant) noexcept {
  if (point == nullptr) return device::Fault::kNone;
  try {
    return point->at_run(occupant.id, occupant.core_bits);
  } catch (...) {
    log::error("device", "a fault point threw; job {} runs without a fault", occupant.id);
    return device::Fault::kNone;
  }
}

/// A running average that follows within some ten runs.
void average(Duration& mean, Duration sample) {
  mean = mean == Duration{} ? sample : mean + (sample - mean) / 8;
}

}  // namespace

LaneScheduler::Outcome LaneScheduler::run_engine(LaneOccupant& occupant, bool shadow) {
  switch (fault_at(fault_point_.get(), occupant)) {
    case device::Fault::kHang: {
      Lock lock(mutex_);
      await_release_locked(lock, occupant, kNever);
      return {occupant.abandon_status};
    }
    case device::Fault::kCrash:
      return {crash_status(occupant), true};
    case device::Fault::kSlow: {
      Outcome outcome{occupant.bound->run(occupant.core_bits, shadow)};
      const TimePoint until = clock_->now() + fault_point_->slow_by();
      Lock lock(mutex_);
      await_release_locked(lock, occupant, until);
      return outcome;
    }
    case device::Fault::kNone:
      break;
  }
  return {occupant.bound->run(occupant.core_bits, shadow)};
}

void LaneScheduler::await_release_locked(Lock& lock, const LaneOccupant& occupant,
                                         TimePoint until) {
  while (!occupant.abandoned)
    if (!clock_->wait_until(lock, abandoned_, until)) return;
}

/// The cores a blocking run gets at once; 0 when it must queue.
std::uint64_t LaneScheduler::cores_here_locked(const device::CoreSet& asked,
                                               std::uint64_t last_bits) const {
  if (!waiting_.empty() || arbiter_ != nullptr || exclusive_lanes_ != 0) return 0;
  const std::uint64_t idle = all_bits_ & ~busy_bits_.load(std::memory_order_relaxed);
  if (asked.is_mask()) return (asked.bits() & ~idle) == 0 ? asked.bits() : 0;
  if (asked.count() > 1) return 0;
  // The core it ran on last has its tensors bound.
  const std::uint64_t same = last_bits & idle;
  return std::has_single_bit(same) ? same : idle & (~idle + 1);
}

void LaneScheduler::occupy_locked(LaneOccupant& occupant, TimePoint free_at) {
  busy_bits_.store(busy_bits_.load(std::memory_order_relaxed) | occupant.core_bits,
                   std::memory_order_relaxed);
  for (std::uint64_t bits = occupant.core_bits; bits != 0; bits &= bits - 1) {
    const auto core = static_cast<std::size_t>(std::countr_zero(bits));
    lanes_[core].running = &occupant;
    states_[core] = {true, true, free_at};
  }
}

std::optional<Status> LaneScheduler::try_run_here(QueueAccount& queue, LanedBindings& bindings,
                                                  const device::Submission& submission,
                                                  device::JobRecord* record) {
  LaneOccupant self;
  self.bound = &bindings;
  self.started = clock_->now();
  {
    Lock lock(mutex_);
    self.core_bits = cores_here_locked(submission.cores, bindings.last_core_bits());
    if (self.core_bits == 0) return std::nullopt;
    self.id = ++last_job_;
    ++counters_.submitted;
    ++queue.depth;
    occupy_locked(self, self.started + bindings.executable().average_run);
  }
  bindings.set_batch(submission.batch);
  Outcome outcome = run_engine(self, false);
  const TimePoint ended = clock_->now();
  Aftermath after;
  {
    Lock lock(mutex_);
    if (self.abandoned) {
      --zombies_;
      outcome = {std::move(self.abandon_status)};
    } else {
      ran_locked(self, outcome, ended, after);
    }
    ++counters_.completed;
    if (!outcome.status.ok()) ++counters_.failed;
    if (--queue.depth == 0) queue.drained.notify_all();
    if (record != nullptr || tracing_) {
      const device::JobRecord made{self.id,
                                   submission.tag,
                                   self.core_bits,
                                   0,
                                   submission.batch,
                                   submission.priority + queue.priority,
                                   outcome.status.code(),
                                   self.started,
                                   self.started,
                                   ended,
                                   bindings.bytes_in(),
                                   bindings.bytes_out()};
      trace_locked(made);
      if (record != nullptr) *record = made;
    }
    bindings.release();
    if (!waiting_.empty()) {
      schedule_locked(ended);
      wake_workers_locked(after);
    }
  }
  if (!after.empty()) settle(after);
  return std::move(outcome.status);
}

/// The engine came back from a job that was not abandoned: its lanes are free.
void LaneScheduler::ran_locked(const LaneOccupant& occupant, const Outcome& outcome, TimePoint now,
                               Aftermath& after) {
  const Duration ran = now - occupant.started;
  free_lanes_locked(occupant, ran);
  if (outcome.status.ok()) average(occupant.bound->executable().average_run, ran);
  if (outcome.crashed)
    report_reset_locked(occupant.core_bits, outcome.status.message(), now, after);
}

void LaneScheduler::trace_locked(const device::JobRecord& record) {
  if (!tracing_) return;
  for (std::uint64_t bits = record.core_bits; bits != 0; bits &= bits - 1)
    lanes_[static_cast<std::size_t>(std::countr_zero(bits))].trace.add(record);
}

bool LaneScheduler::execute(const std::shared_ptr<LanedJob>& job, bool by_worker) {
  return finish(job, run_engine(*job, job->shadow), by_worker);
}

/// True when the calling worker is counted on to take the next granted job at once.
bool LaneScheduler::finish(const std::shared_ptr<LanedJob>& job, Outcome outcome, bool by_worker) {
  if (outcome.status.ok() && job->shadow) {
    {
      Lock lock(mutex_);
      // From here on the deadline comes too late: what is copied out is a result.
      if (!job->abandoned) job->state_ = JobState::kFinishing;
    }
    if (job->state_ == JobState::kFinishing) outcome.status = job->bindings->copy_out();
  }
  const TimePoint now = clock_->now();
  Aftermath after;
  bool claims = false;
  {
    Lock lock(mutex_);
    if (job->abandoned) {
      release_abandoned_locked(*job, after);
    } else {
      ran_locked(*job, outcome, now, after);
      complete_locked(*job, std::move(outcome.status), now, true, after);
      schedule_locked(now);
    }
    // A worker that goes into a user's code first may be away for long: others take over.
    claims = by_worker && after.events.empty() && job->callbacks_.empty() && job->signals.empty();
    if (claims) ++claimed_;
    wake_workers_locked(after);
  }
  settle(after);
  return claims;
}

/// Starts what was granted. A start may complete at once and lead here again: the outer call goes
/// on then, unless this thread is `about_to_wait` for one of them.
void LaneScheduler::drain_starts(bool about_to_wait) {
  if (draining == this && !about_to_wait) return;
  const LaneScheduler* outer = std::exchange(draining, this);
  for (;;) {
    std::shared_ptr<LanedJob> job;
    {
      Lock lock(mutex_);
      if (starts_.empty()) break;
      job = std::move(starts_.front());
      starts_.pop_front();
    }
    start_engine(job);
  }
  draining = outer;
}

void LaneScheduler::start_engine(const std::shared_ptr<LanedJob>& job) {
  const device::Fault fault = fault_at(fault_point_.get(), *job);
  Aftermath after;
  {
    Lock lock(mutex_);
    if (job->abandoned) release_abandoned_locked(*job, after);
    if (!job->abandoned && fault == device::Fault::kHang) hung_.push_back(job);
  }
  settle(after);
  if (!after.empty() || fault == device::Fault::kHang) return;
  if (fault == device::Fault::kCrash) {
    finish(job, {crash_status(*job), true}, false);
    return;
  }
  const Duration slow = fault == device::Fault::kSlow ? fault_point_->slow_by() : Duration{};
  job->bindings->start(
      job->core_bits, job->shadow, [keep = shared_from_this(), job, slow](Status status) {
        if (slow == Duration{}) {
          keep->finish(job, {std::move(status)}, false);
          return;
        }
        keep->clock_->call_at(keep->clock_->now() + slow,
                              [keep, job, status] { keep->finish(job, {status}, false); });
      });
}

}  // namespace corelane::lanes
