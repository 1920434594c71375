// What runs jobs: the caller of a queue's run(), the workers, and the calls of the engine.
#include <utility>

#include "base/guard.h"
#include "base/reserve.h"
#include "base/thread.h"
#include "corelane/base/log.h"
#include "corelane/device/fault.h"
#include "dispatch/awaited.h"
#include "lanes/aftermath.h"
#include "lanes/lane_job.h"
#include "lanes/lane_scheduler.h"
#include "lanes/laned_bindings.h"
#include "lanes/laned_device.h"
#include "lanes/laned_queue.h"

namespace corelane::lanes {
namespace {

/// The scheduler this thread works for.
thread_local const LaneScheduler* working_for = nullptr;

/// How long a worker leaves a job to a submitter that comes to run it.
constexpr Duration kGrace = std::chrono::microseconds(1);
/// Jobs that it leaves to submitters before it looks whether it may go on spinning.
constexpr int kMostLeft = 64;

/// Spins until `flag` is `wanted`, or `until` has come: then false.
bool spin_on(const std::atomic<bool>& flag, bool wanted, const Clock& clock, TimePoint until) {
  // The clock is read once for 32 looks: it costs more than they do.
  do {
    for (int i = 0; i < 32; ++i) {
      if (flag.load(std::memory_order_acquire) == wanted) return true;
      pause_cpu();
    }
  } while (clock.now() < until);
  return false;
}

/// The callbacks of a job that this thread calls.
struct Turn {
  const LaneScheduler* scheduler = nullptr;  ///< Whose worker calls them; null: no worker does.
  bool promised = false;  ///< The worker is counted as coming: it looks for a job after them.
};
thread_local Turn callback_turn;

/// While callbacks are called: by a worker of `scheduler`, or, where that is null, by a thread that
/// may do anything after them, so that no job is left to it.
class TurnScope {
 public:
  explicit TurnScope(const LaneScheduler* scheduler)
      : outer_(std::exchange(callback_turn, Turn{scheduler})) {}
  ~TurnScope() { callback_turn = outer_; }
  TurnScope(const TurnScope&) = delete;
  TurnScope& operator=(const TurnScope&) = delete;

 private:
  const Turn outer_;
};

/// The scheduler whose starts this thread is draining further up its stack.
thread_local const LaneScheduler* draining = nullptr;

Status crash_status(const LaneOccupant& occupant) noexcept {
  const std::string cores =
      text_or_none([&] { return device::CoreSet::mask(occupant.core_bits).to_string(); });
  return error(Code::kDeviceReset, "core set '{}' crashed while it ran job {} and was reset", cores,
               occupant.id);
}

/// The fault that a test injects here; none when its fault point throws.
device::Fault fault_at(device::FaultPoint* point, const LaneOccupant& occupant) noexcept {
  if (point == nullptr) return device::Fault::kNone;
  try {
    return point->at_run(occupant.id, occupant.core_bits);
  } catch (...) {
    log::error("device", "a fault point threw; job {} runs without a fault", occupant.id);
    return device::Fault::kNone;
  }
}

/// A job that ended before its submission returned.
class DoneJob final : public device::Completion {
 public:
  DoneJob(Status status, const device::JobRecord& record)
      : status_(std::move(status)), record_(record) {}

  bool done() const noexcept override { return true; }
  bool released() const noexcept override { return true; }
  bool wait(TimePoint) override { return true; }
  bool wait_released(TimePoint) override { return true; }
  Status status() const override { return status_; }
  device::JobRecord record() const override { return record_; }
  bool cancel() override { return false; }
  void on_done(std::function<void(device::Completion&)> f) override {
    run_callback("device", "a completion's callback", f, *this);
  }

 private:
  const Status status_;
  const device::JobRecord record_;
};

}  // namespace

std::thread LaneScheduler::start_worker(LaneWorkers::Worker& worker, Aftermath& after) {
  auto thread =
      start_thread("corelane-lane", [keep = shared_from_this(), &worker] { keep->work(worker); });
  if (thread) return std::move(*thread);
  after->complaints.push_back(text_or_none([&] { return thread.error().message(); }));
  return {};
}

/// Until a job is there that nobody comes to run, or none has come for a while. True where
/// submitters ran so many of theirs that it is time to look whether a worker may still spin.
bool LaneScheduler::spin_for_job(bool gives_way) noexcept {
  for (int left = kMostLeft; left > 0; --left) {
    if (!spin_on(ready_, true, *clock_, clock_->now() + spin_) || !gives_way) return false;
    if (!spin_on(ready_, false, *clock_, clock_->now() + kGrace)) return false;
  }
  return true;
}

void LaneScheduler::work(LaneWorkers::Worker& self) noexcept {
  working_for = this;
  MutexLock lock(mutex_);
  workers_.looks();
  for (bool woken = true;;) {
    if (std::shared_ptr<LanedJob> job = table_.run_next(clock_->now())) {
      begins(*job);
      const CpuBits taken =
          std::exchange(woken, false) ? table_.cores().cpus_to_leave(*job) : CpuBits();
      lock.unlock();
      if (taken.any()) leave_cpus(taken);
      const bool comes = execute(job, true);
      job.reset();  // May be the last reference to the device.
      lock.lock();
      if (comes) workers_.looks();
    } else if (workers_.surplus(table_.abandoned_count())) {
      break;
    } else if (workers_.begin_spin(table_.busy_cores())) {
      const bool gives_way = workers_.gives_way();
      lock.unlock();
      const bool left_all = spin_for_job(gives_way);
      lock.lock();
      workers_.end_spin();
      woken = false;
      if (table_.any_ready()) {
        workers_.give_way(false);  // Nobody came.
      } else if (!left_all) {
        workers_.sleep(self, lock);
        woken = true;
      }
    } else {
      workers_.sleep(self, lock);
      woken = true;
    }
  }
  workers_.ended(self);
}

bool LaneScheduler::run_here(LanedJob& job) {
  if (event_driven_ || job.has_deadline()) return false;
  // A callback of the job may release the last reference of its user.
  const std::shared_ptr<LanedJob> keep = job.shared_from_this();
  {
    MutexLock lock(mutex_);
    if (!table_.run(job, clock_->now())) return false;
    begins(job);
  }
  execute(keep, false);
  return true;
}

bool LaneScheduler::wait(LanedJob& job, TimePoint until) {
  if (job.done()) return true;
  const bool helps = until == kNever;  // A bounded wait never runs the job itself.
  if (event_driven_) drain_starts(true);
  bool spun = false;
  MutexLock lock(mutex_);
  while (!job.done()) {
    if (helps && !job.has_deadline() && table_.is(job, JobState::kGranted)) {
      // A callback of the job may release the last reference of its user.
      const std::shared_ptr<LanedJob> keep = job.shared_from_this();
      table_.run(job, clock_->now());
      begins(job);
      lock.unlock();
      execute(keep, false);
      lock.lock();
      continue;
    }
    // Once for each wait: a job that runs longer than that is waited for asleep.
    if (!spun && !event_driven_ && table_.is(job, JobState::kRunning) &&
        workers_.may_spin(table_.busy_cores())) {
      spun = true;
      // Had the worker left the job to this thread, it would not have to be told of the result.
      if (helps && !job.has_deadline()) workers_.give_way(true);
      workers_.waiter_spins(true);
      lock.unlock();
      spin_on(job.done_flag(), true, *clock_, clock_->now() + spin_);
      lock.lock();
      workers_.waiter_spins(false);
      continue;
    }
    // A granted job with such a waiter needs no worker: it is offered to this thread.
    if (helps) table_.add_waiter(job);
    const bool more = clock_->wait_until(lock.native(), job.changed, until);
    if (helps) table_.remove_waiter(job);
    if (!more) return job.done();
  }
  return true;
}

bool LaneScheduler::wait_released(LanedJob& job, TimePoint until) {
  if (job.released()) return true;
  if (!wait(job, until)) return false;
  MutexLock lock(mutex_);
  while (!job.released())
    if (!clock_->wait_until(lock.native(), job.changed, until)) return job.released();
  return true;
}

/// Work with a deadline runs in its caller's thread only where that need not leave it.
inline std::optional<Status> LanedQueue::run_here(const device::Submission& job, Acquired& bindings,
                                                  bool only_brief, device::JobRecord* record) {
  if (only_brief && !job.here_if_brief) return std::nullopt;
  if (!job.wait.empty() || !job.signal.empty()) return std::nullopt;
  auto status = device_->scheduler().try_run_here(*account_, *bindings, job, only_brief, record);
  if (status) bindings.taken_over();  // And released, when it had run.
  return status;
}

/// In the calling thread where that is possible, so that nobody is woken.
Status LanedQueue::run(const device::Submission& job, device::JobRecord* record) {
  CORELANE_ASSIGN(Acquired bindings, acquire(job));
  if (auto status = run_here(job, bindings, job.deadline != kNever, record))
    return std::move(*status);
  CORELANE_ASSIGN(const std::shared_ptr<LanedJob> made, enqueue(job, std::move(bindings), true));
  made->wait(kNever);
  // The caller gets no completion to wait on, and may free memory that the job uses directly.
  if (!made->has_deadline() || job.direct_user_memory) made->wait_released(kNever);
  if (record != nullptr) *record = made->record();
  return made->status();
}

Result<std::shared_ptr<device::Completion>> LanedQueue::submit(const device::Submission& job) {
  CORELANE_ASSIGN(Acquired bindings, acquire(job));
  device::JobRecord record;
  if (auto status = run_here(job, bindings, true, &record))
    return std::make_shared<DoneJob>(std::move(*status), record);
  return enqueue(job, std::move(bindings), false);
}

std::optional<Status> LaneScheduler::try_run_here(QueueAccount& queue, LanedBindings& bindings,
                                                  const device::Submission& submission,
                                                  bool only_brief, device::JobRecord* record) {
  if (event_driven_) return std::nullopt;
  LaneOccupant self;
  self.bound = &bindings;
  self.started = clock_->now();
  note_cpu(self);
  if (only_brief) {
    // An injected fault may take any time.
    if (fault_point_ != nullptr || submission.deadline <= self.started || !bindings.is_brief())
      return std::nullopt;
    self.core_bits = bindings.last_core_bits();
  }
  Aftermath after;
  {
    MutexLock lock(mutex_);
    // Only the begin and the end of the run take the lock. What is wrong with an arbiter is said
    // when the job joins the line.
    if (!table_.begin_here(self, queue, submission, after)) return std::nullopt;
    watch(self);
  }
  bindings.take_terms(submission);
  Outcome outcome = run_engine(self, false);
  if (outcome.lost) {
    bool again = false;
    {
      MutexLock lock(mutex_);
      again = table_.repeat_here(self, outcome, clock_->now(), after);
    }
    if (again) outcome = run_engine(self, false);
  }
  const TimePoint ended = clock_->now();
  {
    MutexLock lock(mutex_);
    table_.end_here(self, queue, submission, outcome, ended, record, after);
    if (table_.any_ready() || want_room_ != 0 || table_.any_capped()) call_workers(after);
  }
  if (!after.empty()) settle(after);
  return std::move(outcome.status);
}

Outcome LaneScheduler::run_engine(LaneOccupant& occupant, bool shadow) noexcept {
  if (occupant.pinned) occupant.bound->pin_to(occupant.core_bits);
  switch (fault_at(fault_point_.get(), occupant)) {
    case device::Fault::kHang:
      await_abandoned(occupant, kNever);
      return {error(Code::kDeviceReset, "job {} hung until it was abandoned", occupant.id)};
    case device::Fault::kCrash:
      return {crash_status(occupant), true};
    case device::Fault::kSlow: {
      Outcome outcome = occupant.bound->run(occupant.core_bits, shadow);
      await_abandoned(occupant, clock_->now() + fault_point_->slow_by());
      return outcome;
    }
    case device::Fault::kLost:
      lose(occupant);
      return {error(Code::kDeviceLost, "job {} ran when the device was lost", occupant.id)};
    case device::Fault::kNone:
      break;
  }
  return occupant.bound->run(occupant.core_bits, shadow);
}

void LaneScheduler::await_abandoned(const LaneOccupant& occupant, TimePoint until) {
  MutexLock lock(mutex_);
  while (!table_.is(occupant, JobState::kAbandoned))
    if (!clock_->wait_until(lock.native(), abandoned_, until)) return;
}

/// Without the lock. The result of an abandoned job is dropped by the table.
bool LaneScheduler::execute(const std::shared_ptr<LanedJob>& job, bool by_worker) noexcept {
  return returned(job, run_engine(*job, job->shadow), by_worker);
}

/// True when the calling worker is coming: it takes the next granted job at once.
bool LaneScheduler::returned(const std::shared_ptr<LanedJob>& job, Outcome outcome,
                             bool by_worker) noexcept {
  if (outcome.status.ok() && job->shadow) {
    bool in_time = false;
    {
      MutexLock lock(mutex_);
      in_time = table_.begin_copy_out(*job);
    }
    if (in_time)
      outcome.status = no_throw("copying the results", [&] { return job->bindings->copy_out(); });
  }
  const TimePoint now = clock_->now();
  Aftermath after;
  bool comes = false;
  {
    MutexLock lock(mutex_);
    table_.returned(*job, std::move(outcome), now, after);
    // A worker that runs a user's code first may be away for long: others take over.
    comes = by_worker && !after.calls_back();
    if (comes) workers_.comes();
    call_workers(after);
  }
  const TurnScope scope(by_worker && !comes ? this : nullptr);
  const dispatch::AwaitedScope awaited(comes);
  settle(after);
  return comes || callback_turn.promised;
}

void LaneScheduler::promise_worker() noexcept {
  if (callback_turn.scheduler != this || std::exchange(callback_turn.promised, true)) return;
  workers_.comes();
}

/// Starts what was granted. A start may complete at once and lead here again: the outer call goes
/// on then, unless this thread is `about_to_wait` for one of them.
void LaneScheduler::drain_starts(bool about_to_wait) noexcept {
  if (draining == this && !about_to_wait) return;
  const LaneScheduler* outer = std::exchange(draining, this);
  for (;;) {
    std::shared_ptr<LanedJob> job;
    {
      MutexLock lock(mutex_);
      job = table_.next_start();
      if (job != nullptr) watch(*job);
    }
    if (job == nullptr) break;
    start_engine(job);
  }
  draining = outer;
}

void LaneScheduler::start_engine(const std::shared_ptr<LanedJob>& job) noexcept {
  const device::Fault fault = fault_at(fault_point_.get(), *job);
  Aftermath after;
  bool starts = false;
  {
    MutexLock lock(mutex_);
    const bool stays = fault == device::Fault::kHang || fault == device::Fault::kLost;
    starts = table_.may_start(job, stays, after);
  }
  settle(after);
  if (fault == device::Fault::kLost) lose(*job);
  if (!starts) return;
  if (fault == device::Fault::kCrash) {
    returned(job, {crash_status(*job), true}, false);
    return;
  }
  // A slow run is complete for the engine at once; its completion comes later.
  const Duration slow = fault == device::Fault::kSlow ? fault_point_->slow_by() : Duration{};
  Status started = no_throw("the start of a job", [&] { return start_bindings(job, slow); });
  if (!started.ok()) returned(job, {std::move(started)}, false);
}

/// A failure, or an exception: the engine does not have the job.
Status LaneScheduler::start_bindings(const std::shared_ptr<LanedJob>& job, Duration slow) {
  if (job->pinned) job->bindings->pin_to(job->core_bits);
  return job->bindings->start(job->core_bits, job->ready(), job->shadow,
                              [keep = shared_from_this(), job, slow](Outcome outcome) {
                                if (slow == Duration{})
                                  keep->returned(job, std::move(outcome), false);
                                else
                                  keep->returned_late(job, std::move(outcome), slow);
                              });
}

void LaneScheduler::returned_late(const std::shared_ptr<LanedJob>& job, Outcome outcome,
                                  Duration slow) noexcept {
  outcome.span.reset();  // It ends when the call below says so.
  try {
    clock_->call_at(clock_->now() + slow, [keep = shared_from_this(), job, outcome] {
      keep->returned(job, outcome, false);
    });
  } catch (...) {
    returned(job, std::move(outcome), false);  // There is no memory for a timer.
  }
}

void LaneScheduler::shutdown() {
  // The last reference to a device may go in one of its own threads, which cannot join itself.
  const bool inside = working_for == this || notifier_->is_current() || observing_->is_current();
  SureVector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    threads = workers_.stop();
    if (watching_) clock_->cancel(watch_timer_);
    ready_.store(true, std::memory_order_release);
  }
  if (inside) {
    for (std::thread& thread : threads) thread.detach();
    notifier_->stop();
    observing_->stop();
  } else {
    for (std::thread& thread : threads) thread.join();
    notifier_->stop_and_join();
    observing_->stop_and_join();
  }
}

}  // namespace corelane::lanes
