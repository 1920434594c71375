#include "lanes/lane_table.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "lanes/aftermath.h"
#include "lanes/laned_bindings.h"
#include "lanes/laned_executable.h"

namespace corelane::lanes {
namespace {

std::string cores_text(const device::CoreSet& cores) noexcept {
  return text_or_none([&] { return cores.to_string(); });
}

std::string cores_text(std::uint64_t core_bits) noexcept {
  return cores_text(device::CoreSet::mask(core_bits));
}

/// For ways that the list which held the job makes sure of.
void advance(JobProgress& progress, JobState next) {
  [[maybe_unused]] const bool allowed = progress.advance(next);
  assert(allowed);
}

/// A running average that follows within some ten runs.
void average(Duration& mean, Duration sample) {
  mean = mean == Duration{} ? sample : mean + (sample - mean) / 8;
}

template <class Jobs>
bool erase_job(Jobs& jobs, const LanedJob& job) {
  const auto place = std::find_if(jobs.begin(), jobs.end(),
                                  [&](const auto& other) { return other.get() == &job; });
  if (place == jobs.end()) return false;
  jobs.erase(place);
  return true;
}

std::shared_ptr<LanedJob> pop(SureDeque<std::shared_ptr<LanedJob>>& jobs) {
  if (jobs.empty()) return nullptr;
  std::shared_ptr<LanedJob> job = std::move(jobs.front());
  jobs.pop_front();
  return job;
}

}  // namespace

void LaneTable::refused(const Status& why, TimePoint now, Aftermath& after) {
  log(text_or_none([&] { return fmt::format("a job was refused: {}", why.message()); }), now,
      after);
}

Status LaneTable::submit(const std::shared_ptr<LanedJob>& job, bool caller_waits, TimePoint now,
                         Aftermath& after) {
  CORELANE_TRY(loss_.check(job->executable().generation()));
  CORELANE_TRY(cores_.check(job->cores, &job->executable()));
  const bool late = job->deadline <= now;
  if (!late && !job->waits.empty() && full()) return refuse_full();
  job->id = ++last_.job;
  job->record_.id = job->id;
  job->record_.queued = now;
  job->record_.bytes_in = job->bindings->bytes_in();
  job->record_.queue_depth = static_cast<std::uint32_t>(line_.size());
  ++counters_.submitted;
  joins(*job->queue);
  ++job->queue->depth;
  if (caller_waits) ++job->waiters_;
  if (late) {
    complete(
        *job,
        error(Code::kTimeout, "the deadline of job {} had passed when it was submitted", job->id),
        now, after);
  } else if (job->waits.empty()) {
    if (place(job, now, after)) return {};
    // As if it had never been here; only its number is gone.
    --counters_.submitted;
    --job->queue->depth;
    if (caller_waits) --job->waiters_;
    return refuse_full();
  } else {
    advance(job->progress_, JobState::kBlocked);
    job->pending_fences_ = job->waits.size();
    blocked_.push_back(job);
  }
  return {};
}

Status LaneTable::refuse_full() const {
  return error(Code::kBusy,
               "the device's line is full: {} of the {} jobs that may wait for cores or fences do "
               "(option depth); submit again when one of them has started",
               waiting_count(), depth_limit_)
      .with(Detail::kLimit, text_or_none([&] { return fmt::format("{} jobs", depth_limit_); }));
}

bool LaneTable::fence_signalled(LanedJob& job, const Status& status, TimePoint now,
                                Aftermath& after) {
  if (!job.progress_.is(JobState::kBlocked)) return false;
  // A failed fence ends the job at once; the others find it done.
  if (status.ok() && --job.pending_fences_ > 0) return false;
  erase_job(blocked_, job);
  if (status.ok()) {
    advance(job.progress_, JobState::kCopyingIn);
    ++copying_;
    return true;
  }
  complete(job, status.wrap("a fence that the job waits for was signalled as failed"), now, after);
  return false;
}

void LaneTable::inputs_copied(LanedJob& job, TimePoint now, Aftermath& after) {
  --copying_;
  // While the job waited for its fences, others may have taken cores exclusively.
  Status allowed = loss_.check(job.executable().generation());
  if (allowed.ok()) allowed = cores_.check(job.cores, &job.executable());
  if (job.deadline <= now) {
    time_out(job, now, after);
  } else if (!allowed.ok()) {
    complete(job, std::move(allowed), now, after);
  } else {
    advance(job.progress_, JobState::kWaiting);
    line_.add(facts_of(job), job.shared_from_this());
  }
  schedule(now, after);
}

device::WaitingJob LaneTable::facts_of(const LanedJob& job) const {
  return {job.id,
          job.queue->id,
          job.record_.priority,
          as_asked(job.cores),
          job.record_.queued,
          job.deadline,
          job.executable().average_run,
          job.queue->share.weight(),
          job.queue->share.served(),
          job.record_.queued};
}

/// The cores that a newcomer gets at once while nobody waits and no user's arbiter decides; 0 when
/// it must join the line.
inline std::uint64_t LaneTable::cores_now(const device::CoreSet& asked,
                                          const LanedBindings& bindings) const {
  const LanedExecutable* executable = &bindings.executable();
  const std::uint64_t allowed = cores_.allowed_bits(executable);
  const std::uint64_t idle = cores_.idle_bits() & allowed;
  if (asked.is_mask()) return (asked.bits() & ~idle) == 0 ? asked.bits() : 0;
  if (takes_all(asked)) return idle == allowed ? idle : 0;
  // Which cores to join is the arbiter's decision.
  if (asked.count() > 1) return 0;
  const std::uint64_t some = idle & asked.among();
  const std::uint64_t own = cores_.owned_bits() == 0 ? 0 : cores_.own_bits(executable) & some;
  const std::uint64_t from = own != 0 ? own : some;
  // The core it ran on last has its tensors bound.
  const std::uint64_t same = bindings.last_core_bits() & from;
  // Not std::has_single_bit(): without -mpopcnt it is a call.
  return same != 0 && (same & (same - 1)) == 0 ? same : from & (~from + 1);
}

/// False, and the job is in no list, when it would have to wait and no more jobs may.
bool LaneTable::place(const std::shared_ptr<LanedJob>& job, TimePoint now, Aftermath& after) {
  job->ready_ = now;
  // Nobody is overtaken, and a user's arbiter is asked for each job.
  const bool at_once =
      line_.empty() && !line_.has_arbiter() && job->queue->share.allowed_at() <= now;
  const std::uint64_t bits = at_once ? cores_now(job->cores, *job->bindings) : 0;
  if (bits != 0) {
    grant(job, bits, now);
    return true;
  }
  advance(job->progress_, JobState::kWaiting);
  line_.add(facts_of(*job), job);
  // An arbiter may let another job start because this one is there.
  schedule(now, after);
  if (!job->progress_.is(JobState::kWaiting) || !over_limit()) return true;
  line_.remove(*job);
  // The timer of its deadline may find it, and passes by.
  advance(job->progress_, JobState::kNew);
  return false;
}

/// Each grant changes what is idle, so the line is asked until it has nothing that can start.
void LaneTable::schedule(TimePoint now, Aftermath& after) {
  while (const auto next = line_.next(cores_, now, after->complaints))
    grant(next->job, next->core_bits, now);
}

/// A queue without jobs has let time pass.
void LaneTable::joins(QueueAccount& queue) noexcept {
  if (queue.depth == 0) queue.share.join(level_);
}

/// The estimate is for arbiters and shares alone: nothing ends because of it.
inline void LaneTable::occupy(LaneOccupant& occupant, TimePoint now, Duration expected) {
  QueueShare& share = occupant.origin->share;
  level_ = std::max(level_, share.level());
  occupant.charged_ = expected * count_cores(occupant.core_bits);
  share.charge(occupant.charged_, now);
  cores_.occupy(occupant, now + expected);
}

void LaneTable::vacate(const LaneOccupant& occupant, Duration ran) {
  occupant.origin->share.correct(ran * count_cores(occupant.core_bits) - occupant.charged_);
  cores_.free(occupant, ran);
}

void LaneTable::grant(const std::shared_ptr<LanedJob>& job, std::uint64_t core_bits,
                      TimePoint now) {
  job->core_bits = core_bits;
  job->cpu = {};  // Of a request that was lost: its thread may have ended.
  occupy(*job, now, job->executable().average_run);
  advance(job->progress_, JobState::kGranted);
  if (event_driven_) {
    start(*job, now);
    starts_.push_back(job);
  } else {
    ready_.push_back(job);
  }
}

void LaneTable::start(LanedJob& job, TimePoint now) {
  advance(job.progress_, JobState::kRunning);
  job.started = now;
  job.record_.started = now;
  job.record_.core_bits = job.core_bits;
}

std::shared_ptr<LanedJob> LaneTable::run_next(TimePoint now) {
  std::shared_ptr<LanedJob> job = pop(ready_);
  if (job != nullptr) start(*job, now);
  return job;
}

bool LaneTable::run(LanedJob& job, TimePoint now) {
  if (!job.progress_.is(JobState::kGranted)) return false;
  erase_job(ready_, job);
  start(job, now);
  return true;
}

std::shared_ptr<LanedJob> LaneTable::next_start() { return pop(starts_); }

bool LaneTable::may_start(const std::shared_ptr<LanedJob>& job, bool hangs, Aftermath& after) {
  if (job->progress_.is(JobState::kAbandoned)) {
    release(*job, after);
    return false;
  }
  // Nobody calls the engine for it: abandon() finds it here and releases it.
  if (hangs) hung_.push_back(job);
  return !hangs;
}

/// From kCopyingOut no way leads to kAbandoned: the memory of the caller is being written.
bool LaneTable::begin_copy_out(LanedJob& job) {
  return job.progress_.advance(JobState::kCopyingOut);
}

void LaneTable::returned(LanedJob& job, Outcome outcome, TimePoint now, Aftermath& after) {
  if (job.progress_.is(JobState::kAbandoned)) return release(job, after);
  const TimePoint ended = outcome.span ? outcome.span->ended : now;
  if (outcome.span) job.started = job.record_.started = outcome.span->began;
  leave_cores(job, outcome, ended, after);
  // While it ran, others may have taken cores exclusively.
  Status allowed = outcome.lost ? cores_.check(job.cores, &job.executable()) : Status();
  // JobProgress allows this way once: a request that is lost again fails the job.
  if (!allowed.ok())
    complete(job, std::move(allowed), ended, after);
  else if (outcome.lost && job.progress_.advance(JobState::kWaiting))
    line_.put_back(facts_of(job), job.shared_from_this());
  else
    complete(job, std::move(outcome.status), ended, after);
  schedule(now, after);
}

/// The engine has returned from what was not abandoned: its cores are free.
inline void LaneTable::leave_cores(const LaneOccupant& occupant, const Outcome& outcome,
                                   TimePoint now, Aftermath& after) {
  const Duration ran = now - occupant.started;
  vacate(occupant, ran);
  if (outcome.status.ok()) average(occupant.bound->executable().average_run, ran);
  if (outcome.crashed) report_reset(occupant.core_bits, outcome.status.message(), now, after);
}

void LaneTable::count_completed(QueueAccount& queue, const Status& status) {
  ++counters_.completed;
  if (!status.ok()) ++counters_.failed;
  // A notification needs no lock, but a queue may be gone once the lock is released.
  if (--queue.depth == 0 && queue.draining != 0) queue.drained.notify_all();
}

/// The job has its result, and unless it is abandoned its bindings are released.
void LaneTable::complete(LanedJob& job, Status status, TimePoint now, Aftermath& after) {
  const bool released = !job.progress_.is(JobState::kAbandoned);
  if (released) advance(job.progress_, JobState::kDone);
  job.record_.code = status.code();
  job.record_.ended = now;
  // An abandoned job has no result, and its bindings belong to the engine.
  if (released) job.record_.bytes_out = job.bindings->bytes_out();
  count_completed(*job.queue, status);
  if (records_.on()) records_.add(job.record_, after);
  job.status_ = std::move(status);
  if (released) {
    job.bindings->release();
    job.released_.store(true, std::memory_order_release);
  }
  // Last: a reader that sees it set sees status and record.
  job.done_.store(true, std::memory_order_release);
  after->completed.push_back(job.shared_from_this());
}

/// Takes a job that has not started out of the list of its state; false when it has.
bool LaneTable::withdraw(LanedJob& job) {
  switch (job.progress_.state()) {
    case JobState::kBlocked:
      return erase_job(blocked_, job);
    case JobState::kWaiting:
      line_.remove(job);
      return true;
    // No thread has taken it: the worker that was called for it finds nothing and goes on.
    case JobState::kGranted:
      vacate(job, Duration{});
      return erase_job(ready_, job);
    default:
      return false;
  }
}

bool LaneTable::end_unstarted(LanedJob& job, Status why, TimePoint now, Aftermath& after) {
  const auto keep = job.shared_from_this();
  if (!withdraw(job)) return false;
  complete(job, std::move(why), now, after);
  schedule(now, after);
  return true;
}

bool LaneTable::cancel(LanedJob& job, TimePoint now, Aftermath& after) {
  return end_unstarted(
      job, error(Code::kCancelled, "job {} was cancelled before it started", job.id), now, after);
}

void LaneTable::end_ready(const Status& why, TimePoint now, Aftermath& after) {
  const auto needs_worker = [](const auto& job) {
    return job->waiters_ == 0 || job->has_deadline();
  };
  for (;;) {
    const auto next = std::find_if(ready_.begin(), ready_.end(), needs_worker);
    if (next == ready_.end()) return;
    const std::shared_ptr<LanedJob> job = *next;
    end_unstarted(*job, why, now, after);
  }
}

void LaneTable::time_out(LanedJob& job, TimePoint now, Aftermath& after) {
  complete(job,
           error(Code::kTimeout,
                 "{} did not start before its deadline: its cores '{}' were busy or its fences not "
                 "signalled",
                 job_text(job), cores_text(job.cores)),
           now, after);
}

void LaneTable::deadline_passed(LanedJob& job, TimePoint now, Aftermath& after) {
  const auto keep = job.shared_from_this();
  if (withdraw(job)) {
    time_out(job, now, after);
  } else if (job.progress_.is(JobState::kRunning)) {
    abandon(job,
            error(Code::kTimeout,
                  "{} still ran on core set '{}' at its deadline; it was abandoned and the cores "
                  "were reset",
                  job_text(job), cores_text(job.core_bits)),
            now, after);
    report_reset(job.core_bits, text_or_none([&] {
                   return fmt::format("{} was abandoned at its deadline", job_text(job));
                 }),
                 now, after);
  }
  schedule(now, after);
}

/// Gives the cores of what runs to others. The engine may still be busy with it: its bindings stay
/// acquired until it returns.
void LaneTable::abandon(LaneOccupant& occupant, Status status, TimePoint now, Aftermath& after) {
  vacate(occupant, now - occupant.started);
  advance(occupant.progress_, JobState::kAbandoned);
  ++counters_.abandoned;
  ++abandoned_;
  after->abandoned = true;
  occupant.abandon_status_ = status;
  // Until returned() is called, which needs the lock, no other job can have the bindings.
  if (occupant.bound != nullptr) occupant.bound->abandon();
  if (occupant.job == nullptr) return;  // Its own thread reports it when the engine returns.
  LanedJob& job = *occupant.job;
  complete(job, std::move(status), now, after);
  if (erase_job(hung_, job)) release(job, after);
}

/// The engine does not have the abandoned job any more.
void LaneTable::release(LanedJob& job, Aftermath& after) {
  advance(job.progress_, JobState::kDone);
  --abandoned_;
  job.bindings->release();
  job.released_.store(true, std::memory_order_release);
  after->released.push_back(job.shared_from_this());
}

void LaneTable::report_reset(std::uint64_t core_bits, std::string_view text, TimePoint now,
                             Aftermath& after) {
  ++counters_.resets;
  log(text_or_none(
          [&] { return fmt::format("cores '{}' were reset: {}", cores_text(core_bits), text); }),
      now, after);
  records_.add(device::Event{device::EventKind::kCoreReset, now, core_bits,
                             text_or_none([&] { return std::string(text); })},
               after);
}

/// A user's arbiter that withholds the cores is asked again when the run is submitted as a job.
bool LaneTable::begin_here(LaneOccupant& run, QueueAccount& queue,
                           const device::Submission& submission, Aftermath& after) {
  if (!line_.empty() || queue.share.allowed_at() > run.started) return false;
  const LanedExecutable& executable = run.bound->executable();
  if (!loss_.is_current(executable.generation())) return false;
  const std::uint64_t wanted = run.core_bits;
  joins(queue);
  if (!line_.has_arbiter()) {
    run.core_bits = cores_now(submission.cores, *run.bound);
  } else if (cores_.check(submission.cores, &executable).ok()) {
    const device::WaitingJob facts{last_.job + 1,
                                   queue.id,
                                   submission.priority + queue.priority,
                                   as_asked(submission.cores),
                                   run.started,
                                   kNever,
                                   executable.average_run,
                                   queue.share.weight(),
                                   queue.share.served(),
                                   run.started};
    run.core_bits = line_.grant_alone(facts, executable, cores_, run.started, after->complaints);
  }
  if (run.core_bits == 0 || (wanted != 0 && run.core_bits != wanted)) return false;
  run.origin = &queue;
  // Blocking runs and jobs are numbered together: a record names one of either.
  run.id = ++last_.job;
  ++counters_.submitted;
  ++queue.depth;
  advance(run.progress_, JobState::kRunning);
  occupy(run, run.started, executable.average_run);
  return true;
}

bool LaneTable::repeat_here(LaneOccupant& run, const Outcome& outcome, TimePoint now,
                            Aftermath& after) {
  if (!run.progress_.is(JobState::kRunning) || !run.progress_.advance(JobState::kWaiting))
    return false;
  advance(run.progress_, JobState::kGranted);
  advance(run.progress_, JobState::kRunning);
  report_reset(run.core_bits, outcome.status.message(), now, after);
  return true;
}

void LaneTable::end_here(LaneOccupant& run, QueueAccount& queue,
                         const device::Submission& submission, Outcome& outcome, TimePoint now,
                         device::JobRecord* record, Aftermath& after) {
  if (run.progress_.is(JobState::kAbandoned)) {
    --abandoned_;
    outcome = {std::move(run.abandon_status_)};
  } else {
    leave_cores(run, outcome, now, after);
  }
  advance(run.progress_, JobState::kDone);
  count_completed(queue, outcome.status);
  const auto made = [&]() -> device::JobRecord {
    return {run.id,
            submission.tag,
            run.core_bits,
            0,
            submission.batch,
            submission.priority + queue.priority,
            outcome.status.ok() ? Code::kOk : outcome.status.code(),
            run.started,
            run.started,
            now,
            run.bound->bytes_in(),
            run.bound->bytes_out(),
            queue.id};
  };
  if (record != nullptr) *record = made();
  if (records_.on()) records_.add(made(), after);
  run.bound->release();
  // While it ran, jobs have joined the line for its cores.
  if (!line_.empty()) schedule(now, after);
}

void LaneTable::reset(std::uint64_t core_bits, TimePoint now, Aftermath& after) {
  for (LaneOccupant* occupant : cores_.occupants(core_bits)) {
    // A granted job has not reached the engine, and one that is copied out has left it.
    if (!occupant->progress_.is(JobState::kRunning)) continue;
    abandon(*occupant,
            error(Code::kDeviceReset, "job {} was abandoned: its cores '{}' were reset",
                  occupant->id, cores_text(occupant->core_bits)),
            now, after);
  }
  report_reset(core_bits, "reset was asked for", now, after);
  schedule(now, after);
}

}  // namespace corelane::lanes
