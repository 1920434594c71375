#include "lanes/lane_scheduler.h"

#include <algorithm>
#include <bit>

#include "base/guard.h"
#include "corelane/base/log.h"
#include "lanes/laned_bindings.h"
#include "lanes/laned_executable.h"

namespace corelane::lanes {

LaneScheduler::LaneScheduler(std::size_t cores, const device::LaneOptions& options,
                             bool event_driven)
    : clock_(options.clock),
      fault_point_(options.fault_point),
      spin_(options.spin),
      event_driven_(event_driven),
      all_bits_(device::CoreSet::first(cores).bits()),
      cpus_(std::thread::hardware_concurrency()),
      lanes_(cores),
      states_(cores) {}

LaneScheduler::~LaneScheduler() = default;

Status LaneScheduler::submit(const std::shared_ptr<LanedJob>& job, bool caller_waits) {
  const TimePoint now = clock_->now();
  Aftermath after;
  {
    Lock lock(mutex_);
    CORELANE_TRY(check_cores_locked(job->cores, &job->bindings->executable()));
    job->id = ++last_job_;
    job->bound = job->bindings.get();
    job->job = job.get();
    job->record_.id = job->id;
    job->record_.queued = now;
    job->record_.bytes_in = job->bindings->bytes_in();
    job->record_.queue_depth = static_cast<std::uint32_t>(waiting_.size());
    ++counters_.submitted;
    ++job->queue->depth;
    if (caller_waits) ++job->waiters_;
    if (job->deadline <= now) {
      complete_locked(
          *job,
          error(Code::kTimeout, "the deadline of job {} had passed when it was submitted", job->id),
          now, true, after);
    } else {
      if (job->has_deadline())
        job->timer_ = clock_->call_at(job->deadline, [weak = job->weak_from_this()] {
          auto alive = weak.lock();
          if (alive == nullptr) return;
          LaneScheduler& scheduler = alive->scheduler;
          scheduler.deadline_passed(std::move(alive));
        });
      if (job->waits.empty()) {
        place_locked(job, now);
        wake_workers_locked(after);
      } else {
        job->state_ = JobState::kBlocked;
        job->pending_fences_ = job->waits.size();
        blocked_.push_back(job);
      }
    }
  }
  settle(after);
  if (!job->waits.empty()) await_fences(job);
  return {};
}

void LaneScheduler::await_fences(const std::shared_ptr<LanedJob>& job) {
  // The fence holds the job weakly and the job the fence: no cycle when it is never signalled.
  for (const std::shared_ptr<device::Fence>& fence : job->waits)
    fence->on_signal([weak = job->weak_from_this()](const Status& status) {
      if (const auto alive = weak.lock()) alive->scheduler.fence_signalled(alive, status);
    });
}

void LaneScheduler::fence_signalled(const std::shared_ptr<LanedJob>& job, const Status& status) {
  const TimePoint now = clock_->now();
  Aftermath after;
  {
    Lock lock(mutex_);
    if (job->state_ != JobState::kBlocked) return;
    if (status.ok() && --job->pending_fences_ > 0) return;
    std::erase(blocked_, job);
    Status verdict = status.ok()
                         ? check_cores_locked(job->cores, &job->bindings->executable())
                         : status.wrap("a fence that the job waits for was signalled as failed");
    if (verdict.ok()) {
      // Under the lock: while the job is not done, its caller keeps the memory.
      job->bindings->renew_kept();
      if (job->shadow) job->bindings->copy_in();
      enqueue_locked(job);
    } else {
      complete_locked(*job, std::move(verdict), now, true, after);
    }
    schedule_locked(now);
    wake_workers_locked(after);
  }
  settle(after);
}

void LaneScheduler::enqueue_locked(const std::shared_ptr<LanedJob>& job) {
  job->state_ = JobState::kQueued;
  waiting_.push_back({job->id, job->queue->id, job->record_.priority, job->cores,
                      job->record_.queued, job->deadline, job->bindings->executable().average_run});
  waiting_jobs_.push_back(job);
}

/// Gives a new job its cores when nobody is before it, else a place in the line.
void LaneScheduler::place_locked(const std::shared_ptr<LanedJob>& job, TimePoint now) {
  const std::uint64_t bits = cores_here_locked(job->cores, job->bindings->last_core_bits());
  if (bits != 0) {
    grant_locked(job, bits, now);
  } else {
    enqueue_locked(job);
    schedule_locked(now);
  }
}

void LaneScheduler::schedule_locked(TimePoint now) {
  while (!waiting_.empty() && busy_bits_.load(std::memory_order_relaxed) != all_bits_) {
    const auto grant = pick_locked(now);
    if (!grant) return;
    const auto at = static_cast<std::ptrdiff_t>(grant->job);
    const std::shared_ptr<LanedJob> job = std::move(waiting_jobs_[grant->job]);
    waiting_jobs_.erase(waiting_jobs_.begin() + at);
    waiting_.erase(waiting_.begin() + at);
    grant_locked(job, grant->core_bits, now);
  }
}

void LaneScheduler::grant_locked(const std::shared_ptr<LanedJob>& job, std::uint64_t core_bits,
                                 TimePoint now) {
  job->core_bits = core_bits;
  occupy_locked(*job, now + job->bindings->executable().average_run);
  if (event_driven_) {
    start_locked(*job, now);
    starts_.push_back(job);
  } else {
    job->state_ = JobState::kGranted;
    ready_.push_back(job);
    ready_count_.store(ready_.size(), std::memory_order_release);
  }
}

void LaneScheduler::start_locked(LanedJob& job, TimePoint now) {
  job.state_ = JobState::kRunning;
  job.started = now;
  job.record_.started = now;
  job.record_.core_bits = job.core_bits;
}

void LaneScheduler::free_lanes_locked(const LaneOccupant& occupant, Duration ran) {
  for (std::uint64_t bits = occupant.core_bits; bits != 0; bits &= bits - 1) {
    const auto core = static_cast<std::size_t>(std::countr_zero(bits));
    lanes_[core].running = nullptr;
    lanes_[core].busy += ran;
    states_[core].busy = false;
  }
  busy_bits_.store(busy_bits_.load(std::memory_order_relaxed) & ~occupant.core_bits,
                   std::memory_order_relaxed);
}

void LaneScheduler::complete_locked(LanedJob& job, Status status, TimePoint now, bool release,
                                    Aftermath& after) {
  if (job.timer_ != 0) clock_->cancel(job.timer_);
  job.record_.code = status.code();
  job.record_.ended = now;
  // The engine still has the bindings of an abandoned job.
  if (release) job.record_.bytes_out = job.bindings->bytes_out();
  ++counters_.completed;
  if (!status.ok()) ++counters_.failed;
  trace_locked(job.record_);
  job.status_ = std::move(status);
  job.state_ = JobState::kDone;
  if (--job.queue->depth == 0) job.queue->drained.notify_all();
  if (release) {
    job.bindings->release();
    job.released_.store(true, std::memory_order_release);
  }
  job.done_.store(true, std::memory_order_release);
  after.completed.push_back(job.shared_from_this());
}

/// Takes a job that has not started out of whatever list holds it; false when it has.
bool LaneScheduler::withdraw_locked(LanedJob& job) {
  const auto same = [&](const std::shared_ptr<LanedJob>& other) { return other.get() == &job; };
  switch (job.state_) {
    case JobState::kBlocked:
      std::erase_if(blocked_, same);
      return true;
    case JobState::kQueued: {
      const auto place = std::find_if(waiting_jobs_.begin(), waiting_jobs_.end(), same);
      waiting_.erase(waiting_.begin() + (place - waiting_jobs_.begin()));
      waiting_jobs_.erase(place);
      return true;
    }
    case JobState::kGranted:
      take_ready_locked(job);
      free_lanes_locked(job, Duration{});
      return true;
    default:
      return false;
  }
}

bool LaneScheduler::cancel(LanedJob& job) {
  const TimePoint now = clock_->now();
  Aftermath after;
  {
    Lock lock(mutex_);
    const auto keep = job.shared_from_this();
    if (!withdraw_locked(job)) return false;
    complete_locked(job, error(Code::kCancelled, "job {} was cancelled before it started", job.id),
                    now, true, after);
    schedule_locked(now);
    wake_workers_locked(after);
  }
  settle(after);
  return true;
}

void LaneScheduler::on_done(LanedJob& job, std::function<void(device::Completion&)> f) {
  {
    Lock lock(mutex_);
    if (job.state_ != JobState::kDone) {
      job.callbacks_.push_back(std::move(f));
      return;
    }
  }
  run_callback("device", "a completion's callback", f, job);
}

void LaneScheduler::settle(Aftermath& after) {
  wake(after);
  tell(after);
}

/// Wakes whoever waits. Calls no code of a user.
void LaneScheduler::wake(Aftermath& after) {
  if (complained_.load(std::memory_order_relaxed)) complain();
  for (Worker* worker : after.woken) worker->wake.notify_one();
  for (const auto& job : after.offered) job->changed_.notify_all();
  for (const auto& job : after.released) job->changed_.notify_all();
  for (const auto& job : after.completed) job->changed_.notify_all();
  if (event_driven_) drain_starts(false);
}

/// Tells the event sink, the fences and the callbacks.
void LaneScheduler::tell(Aftermath& after) {
  if (!after.events.empty()) {
    std::shared_ptr<const device::EventSink> sink;
    {
      Lock lock(mutex_);
      sink = sink_;
    }
    for (const device::Event& event : after.events)
      if (sink != nullptr) run_callback("device", "an event sink", *sink, event);
  }
  for (const auto& job : after.completed) {
    // Nobody else touches these once the job is done.
    for (const auto& fence : job->signals) fence->signal(job->status_);
    for (const auto& f : job->callbacks_)
      run_callback("device", "a completion's callback", f, *job);
    job->callbacks_.clear();
  }
}

/// A line for the log, which may call back: written when the lock is gone.
void LaneScheduler::complain_locked(std::string text) const {
  complaints_.push_back(std::move(text));
  complained_.store(true, std::memory_order_relaxed);
}

void LaneScheduler::complain() {
  std::vector<std::string> lines;
  {
    Lock lock(mutex_);
    lines.swap(complaints_);
    complained_.store(false, std::memory_order_relaxed);
  }
  for (const std::string& line : lines) log::error("device", "{}", line);
}

std::shared_ptr<QueueAccount> LaneScheduler::make_queue(const device::QueueOptions& options) {
  auto account = std::make_shared<QueueAccount>();
  account->priority = options.priority;
  account->name = options.name;
  Lock lock(mutex_);
  account->id = ++last_queue_;
  return account;
}

std::size_t LaneScheduler::depth(const QueueAccount& queue) const {
  Lock lock(mutex_);
  return queue.depth;
}

bool LaneScheduler::drain(QueueAccount& queue, TimePoint until) {
  if (event_driven_) drain_starts(true);
  Lock lock(mutex_);
  while (queue.depth != 0)
    if (!clock_->wait_until(lock, queue.drained, until)) return queue.depth == 0;
  return true;
}

void LaneScheduler::set_arbiter(std::shared_ptr<const device::Arbiter> arbiter) {
  if (arbiter == device::fifo_arbiter()) arbiter = nullptr;
  const TimePoint now = clock_->now();
  Aftermath after;
  {
    Lock lock(mutex_);
    arbiter_.swap(arbiter);
    schedule_locked(now);
    wake_workers_locked(after);
  }
  settle(after);
}

void LaneScheduler::set_event_sink(device::EventSink sink) {
  auto next = sink ? std::make_shared<const device::EventSink>(std::move(sink)) : nullptr;
  Lock lock(mutex_);
  sink_.swap(next);
}

void LaneScheduler::set_trace(std::size_t records_per_core) {
  Lock lock(mutex_);
  for (Lane& lane : lanes_) lane.trace.resize(records_per_core);
  tracing_ = records_per_core != 0;
  traced_ = traced_ || tracing_;
}

Result<std::vector<device::JobRecord>> LaneScheduler::read_trace() const {
  std::vector<device::JobRecord> records;
  {
    Lock lock(mutex_);
    if (!traced_)
      return error(Code::kWrongState, "tracing was never on; call set_trace(records_per_core)");
    for (const Lane& lane : lanes_)
      records.insert(records.end(), lane.trace.records().begin(), lane.trace.records().end());
  }
  // A job on several cores is in several rings.
  std::sort(records.begin(), records.end(),
            [](const device::JobRecord& a, const device::JobRecord& b) {
              return a.started != b.started ? a.started < b.started : a.id < b.id;
            });
  const auto same = [](const device::JobRecord& a, const device::JobRecord& b) {
    return a.id == b.id;
  };
  records.erase(std::unique(records.begin(), records.end(), same), records.end());
  return records;
}

device::DeviceCounters LaneScheduler::counters() const {
  Lock lock(mutex_);
  device::DeviceCounters counters = counters_;
  for (const Lane& lane : lanes_) counters.busy.push_back(lane.busy);
  return counters;
}

device::Health LaneScheduler::health() const {
  Lock lock(mutex_);
  return zombies_ == 0 ? device::Health::kGood : device::Health::kDegraded;
}

}  // namespace corelane::lanes
