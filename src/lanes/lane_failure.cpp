// What goes wrong: deadlines, resets, and the release of abandoned jobs.
#include <algorithm>
#include <bit>

#include "lanes/lane_scheduler.h"
#include "lanes/laned_bindings.h"

namespace corelane::lanes {
namespace {

/// "job 7", with the name of its queue where it has one.
std::string job_text(const LanedJob& job) {
  if (job.queue->name.empty()) return fmt::format("job {}", job.id);
  return fmt::format("job {} of queue '{}'", job.id, job.queue->name);
}

}  // namespace

void LaneScheduler::deadline_passed(std::shared_ptr<LanedJob> job) {
  const auto self = shared_from_this();  // The job may hold the last reference to the device.
  const TimePoint now = clock_->now();
  Aftermath after;
  {
    Lock lock(mutex_);
    job->timer_ = 0;
    if (withdraw_locked(*job)) {
      complete_locked(*job,
                      error(Code::kTimeout,
                            "{} did not start before its deadline: its cores '{}' were busy or "
                            "its fences not signalled",
                            job_text(*job), job->cores.to_string()),
                      now, true, after);
    } else if (job->state_ == JobState::kRunning) {
      const std::uint64_t bits = job->core_bits;
      abandon_locked(*job,
                     error(Code::kTimeout,
                           "{} still ran on core set '{}' at its deadline; it was abandoned "
                           "and the cores were reset",
                           job_text(*job), device::CoreSet::mask(bits).to_string()),
                     now, after);
      report_reset_locked(bits, fmt::format("{} was abandoned at its deadline", job_text(*job)),
                          now, after);
    }
    schedule_locked(now);
    wake_workers_locked(after);
  }
  after.kept.push_back(std::move(job));
  settle_elsewhere(std::move(after));
}

/// On a virtual clock everything happens in the thread that moves the time. On a real one the
/// waiters are woken here, and the rest, which may take long, is left to the notifier.
void LaneScheduler::settle_elsewhere(Aftermath after) {
  if (event_driven_ || clock_->is_virtual()) return settle(after);
  wake(after);
  {
    Lock lock(mutex_);
    if (notifier_.joinable() || start_notifier_locked()) {
      deferred_.push_back(std::move(after));
      deferred_changed_.notify_one();
      return;
    }
  }
  tell(after);
}

Status LaneScheduler::reset(std::uint64_t core_bits) {
  const TimePoint now = clock_->now();
  Aftermath after;
  {
    Lock lock(mutex_);
    std::vector<LaneOccupant*> stuck;
    for (std::uint64_t bits = core_bits; bits != 0; bits &= bits - 1) {
      LaneOccupant* running = lanes_[static_cast<std::size_t>(std::countr_zero(bits))].running;
      const bool started = running != nullptr &&
                           (running->job == nullptr || running->job->state_ == JobState::kRunning);
      if (started && std::find(stuck.begin(), stuck.end(), running) == stuck.end())
        stuck.push_back(running);
    }
    for (LaneOccupant* occupant : stuck)
      abandon_locked(*occupant,
                     error(Code::kDeviceReset, "job {} was abandoned: its cores '{}' were reset",
                           occupant->id, device::CoreSet::mask(occupant->core_bits).to_string()),
                     now, after);
    report_reset_locked(core_bits, "reset was asked for", now, after);
    schedule_locked(now);
    wake_workers_locked(after);
  }
  settle(after);
  return {};
}

/// Gives the lanes of a running job to others. The engine may still be busy with it: its bindings
/// stay acquired until it comes back.
void LaneScheduler::abandon_locked(LaneOccupant& occupant, Status status, TimePoint now,
                                   Aftermath& after) {
  free_lanes_locked(occupant, now - occupant.started);
  occupant.abandoned = true;
  occupant.abandon_status = status;
  ++counters_.abandoned;
  ++zombies_;
  abandoned_.notify_all();
  if (occupant.job == nullptr) return;  // Its own thread reports it when the engine returns.
  LanedJob& job = *occupant.job;
  complete_locked(job, std::move(status), now, false, after);
  const auto place = std::find_if(hung_.begin(), hung_.end(),
                                  [&](const auto& other) { return other.get() == &job; });
  if (place == hung_.end()) return;
  hung_.erase(place);  // `after.completed` still holds it.
  release_abandoned_locked(job, after);
}

void LaneScheduler::release_abandoned_locked(LanedJob& job, Aftermath& after) {
  --zombies_;
  job.bindings->release();
  job.released_.store(true, std::memory_order_release);
  after.released.push_back(job.shared_from_this());
}

void LaneScheduler::report_reset_locked(std::uint64_t bits, std::string text, TimePoint now,
                                        Aftermath& after) {
  ++counters_.resets;
  after.events.push_back({device::EventKind::kCoreReset, now, bits, std::move(text)});
}

}  // namespace corelane::lanes
