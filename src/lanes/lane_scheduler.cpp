#include "lanes/lane_scheduler.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/guard.h"
#include "base/later.h"
#include "base/process/cpus.h"
#include "corelane/base/log.h"
#include "corelane/device/fault.h"
#include "device/fence_watch.h"
#include "device/registry/device_wrappers.h"
#include "lanes/aftermath.h"
#include "lanes/lane_job.h"
#include "lanes/laned_bindings.h"
#include "lanes/laned_executable.h"

namespace corelane::lanes {
namespace {

/// A submission that waits for room looks so often whether it shall give up.
constexpr Duration kGiveUpStep = std::chrono::milliseconds(50);

}  // namespace

LaneScheduler::LaneScheduler(std::size_t cores, const device::LaneOptions& options,
                             bool event_driven, bool joins, bool on_cpus)
    : clock_(options.clock),
      fault_point_(options.fault_point),
      spin_(options.spin),
      event_driven_(event_driven),
      finds_cpus_(on_cpus && process_cpus() > 1),
      cores_(cores),
      notifier_(std::make_shared<dispatch::CallbackThread>(clock_, "corelane-notify", "device")),
      observing_(std::make_shared<dispatch::DeliveryThread>(clock_, "corelane-observ", "device")),
      table_(cores, event_driven, joins, options.depth_limit, options.lease),
      workers_(cores, *clock_, spin_, [this](LaneWorkers::Worker& worker, Aftermath& after) {
        return start_worker(worker, after);
      }) {}

/// Each change of the table but those on the way of a run: see the class. The time and the
/// aftermath are the last arguments of `f`.
template <class R, class... Parameters, class... Arguments>
R LaneScheduler::change(R (LaneTable::*f)(Parameters...), Arguments&&... arguments) {
  const TimePoint now = clock_->now();
  Aftermath after;
  [[maybe_unused]] std::conditional_t<std::is_void_v<R>, std::monostate, R> result{};
  {
    MutexLock lock(mutex_);
    if constexpr (std::is_void_v<R>)
      (table_.*f)(std::forward<Arguments>(arguments)..., now, after);
    else
      result = (table_.*f)(std::forward<Arguments>(arguments)..., now, after);
    call_workers(after);
  }
  settle(after);
  if constexpr (!std::is_void_v<R>) return result;
}

/// Each granted job gets a thread that will run it.
void LaneScheduler::call_workers(Aftermath& after) noexcept {
  if (table_.any_ready()) {
    workers_.call(table_.needed_workers(after), after);
    if (workers_.none()) [[unlikely]]
      table_.end_ready(
          error(Code::kOutOfMemory, "the system gives no thread for the jobs of the device"),
          clock_->now(), after);
  }
  note_ready();
  if (want_room_ != 0) [[unlikely]]
    room_.notify_all();
  if (table_.any_capped()) [[unlikely]]
    watch_caps();
}

/// Jobs whose queue has used up its cap start by themselves: nothing else may happen until then.
void LaneScheduler::watch_caps() noexcept {
  const TimePoint due = table_.next_allowed(clock_->now());
  if (due >= cap_due_) return;
  try {
    clock_->call_at(due, [weak = weak_from_this()] {
      if (const auto alive = weak.lock()) alive->caps_paid();
    });
    // An earlier timer that is left finds nothing to do.
    cap_due_ = due;
  } catch (...) {
    // There is no memory for a timer: the next change of the table tries again.
  }
}

/// On the clock's thread; completes no job.
void LaneScheduler::caps_paid() {
  {
    MutexLock lock(mutex_);
    cap_due_ = kNever;
  }
  change(&LaneTable::caps_paid);
}

/// A store of what is there already would take the cache line from a worker that spins.
void LaneScheduler::note_ready() {
  const bool ready = table_.any_ready();
  if (ready_.load(std::memory_order_relaxed) != ready)
    ready_.store(ready, std::memory_order_release);
}

/// A submission that waits tries again after each change of the line or of the cores: with an idle
/// core a job needs no room. Its own tries change nothing, so that those who wait do not wake each
/// other.
Status LaneScheduler::take(const std::shared_ptr<LanedJob>& job, bool caller_waits) {
  const TimePoint until = std::min(job->room_until, job->deadline);
  // What this thread has granted further up its stack has to start before it waits.
  if (event_driven_ && until > clock_->now()) drain_starts(true);
  Aftermath after;
  Status taken;
  {
    MutexLock lock(mutex_);
    taken = table_.submit(job, caller_waits, clock_->now(), after);
    const auto goes_on = [&] {
      return until > clock_->now() && !(job->give_up && job->give_up->load());
    };
    while (taken.code() == Code::kBusy && goes_on()) {
      const TimePoint look = job->give_up ? later(clock_->now(), kGiveUpStep) : until;
      ++want_room_;
      clock_->wait_until(lock.native(), room_, std::min(until, look));
      --want_room_;
      // Room that is there because the line is being cancelled is not for it.
      if (job->give_up && job->give_up->load()) break;
      taken = table_.submit(job, caller_waits, clock_->now(), after);
    }
    if (!taken.ok())
      table_.refused(taken, clock_->now(), after);
    else if (job->from_callback)
      promise_worker();
    // Also where it was refused: an arbiter may have let another job start meanwhile.
    call_workers(after);
  }
  settle(after);
  return taken;
}

Status LaneScheduler::submit(const std::shared_ptr<LanedJob>& job, bool caller_waits) {
  // Before the table has the job, so that no completion can miss the timer. A deadline that passes
  // meanwhile is seen by the table, which is given a later time.
  if (job->has_deadline()) {
    job->timer = clock_->call_at(job->deadline, [weak = job->weak_from_this()] {
      auto alive = weak.lock();
      if (alive == nullptr) return;
      LaneScheduler& scheduler = alive->scheduler;
      scheduler.deadline_passed(std::move(alive));
    });
  }
  Status taken = take(job, caller_waits);
  if (!taken.ok() && job->has_deadline()) clock_->cancel(job->timer);
  if (!taken.ok()) return taken;
  if (!job->waits.empty()) wait_for_fences(job);
  return {};
}

/// The table has the job: a fence that cannot be waited for ends it.
void LaneScheduler::wait_for_fences(const std::shared_ptr<LanedJob>& job) noexcept {
  try {
    // The fence holds the job weakly and the job the fence: no cycle when it is never signalled.
    for (const std::shared_ptr<device::Fence>& fence : job->waits) {
      fence->on_signal([weak = job->weak_from_this()](const Status& status) {
        if (const auto alive = weak.lock()) alive->scheduler.fence_signalled(alive, status);
      });
    }
  } catch (...) {
    change(
        &LaneTable::end_unstarted, *job,
        Status(error(Code::kOutOfMemory, "no memory to wait for the fences of job {}", job->id)));
  }
}

void LaneScheduler::fence_signalled(const std::shared_ptr<LanedJob>& job,
                                    const Status& status) noexcept {
  const TimePoint now = clock_->now();
  Aftermath after;
  bool copies = false;
  {
    MutexLock lock(mutex_);
    copies = table_.fence_signalled(*job, status, now, after);
    if (!copies) call_workers(after);  // Where it ended, its place in the line is free.
  }
  if (!copies) return settle(after);
  // The caller keeps the memory: until inputs_copied() the job cannot be done. No user is called
  // meanwhile, since cancel() waits for the copy.
  job->bindings->fences_signalled();
  if (job->shadow) job->bindings->copy_in();
  change(&LaneTable::inputs_copied, *job);
  job->changed.notify_all();
}

bool LaneScheduler::cancel(LanedJob& job) {
  {
    MutexLock lock(mutex_);
    // The caller may free the inputs once cancel() returns.
    while (table_.is(job, JobState::kCopyingIn)) job.changed.wait(lock.native());
  }
  return change(&LaneTable::cancel, job);
}

void LaneScheduler::deadline_passed(std::shared_ptr<LanedJob> job) noexcept {
  const auto self = shared_from_this();  // The job may hold the last reference to the device.
  const TimePoint now = clock_->now();
  Aftermath after;
  {
    MutexLock lock(mutex_);
    table_.deadline_passed(*job, now, after);
    call_workers(after);
  }
  after->kept = std::move(job);
  settle_elsewhere(std::move(after));
}

/// Waiters first: they need no code of a user to go on.
void LaneScheduler::settle(Aftermath& after) noexcept {
  if (after.empty() && !event_driven_) return;
  wake(after);
  report(after);
}

/// On a virtual clock everything happens in the thread that moves the time. On a real one the
/// waiters are woken here, and the rest, which may take long, is left to the notifier.
void LaneScheduler::settle_elsewhere(Aftermath after) noexcept {
  if (event_driven_ || clock_->is_virtual()) return settle(after);
  wake(after);
  notifier_->post_or_call(sure_once<void()>(
      [self = shared_from_this(), after = std::move(after)]() mutable { self->report(after); }));
}

/// Wakes the threads that wait. Calls no code of a user but the log's.
void LaneScheduler::wake(Aftermath& after) noexcept {
  for (const std::string& text : after->complaints) log::error("device", "{}", text);
  for (std::condition_variable* worker : after->woken) worker->notify_one();
  if (after->abandoned) abandoned_.notify_all();
  for (const auto& [observer, when] : after->deliveries) observing_->arrange(observer, when);
  for (const auto& job : after->offered) job->changed.notify_all();
  for (const auto& job : after->released) job->changed.notify_all();
  after->completed.for_each([&](const auto& job) {
    if (job->timer != 0) clock_->cancel(job->timer);
    job->changed.notify_all();
  });
  if (event_driven_) drain_starts(false);
}

/// Fences before callbacks: jobs of others wait for them, and a callback may take long. It may also
/// wait for an imported fence, so the thread that signals these leaves it to the notifier.
void LaneScheduler::report(Aftermath& after) noexcept {
  const bool elsewhere = after.calls_back() && device::watches_fences();
  after->completed.for_each([](const auto& job) { job->signal_fences(); });
  if (!elsewhere) return call_back(after->completed);
  notifier_->post_or_call(
      sure_once<void()>([completed = std::move(after->completed)] { call_back(completed); }));
}

void LaneScheduler::call_back(const AftermathLists::CompletedJobs& completed) noexcept {
  completed.for_each([](const auto& job) { job->call_back(); });
}

bool LaneScheduler::add_callback(LanedJob& job, std::function<void(device::Completion&)>& f) {
  MutexLock lock(mutex_);
  return table_.add_callback(job, f);
}

std::shared_ptr<QueueAccount> LaneScheduler::make_queue(const device::QueueOptions& options) {
  auto account = std::make_shared<QueueAccount>();
  account->priority = options.priority;
  account->name = options.name;
  account->timeout_option = options.timeout_option;
  account->share = QueueShare(options.weight, options.time_cap, options.cap_window, cores_);
  MutexLock lock(mutex_);
  account->id = table_.new_queue();
  return account;
}

std::size_t LaneScheduler::depth(const QueueAccount& queue) const {
  MutexLock lock(mutex_);
  return queue.depth;
}

bool LaneScheduler::drain(QueueAccount& queue, TimePoint until) {
  if (event_driven_) drain_starts(true);
  MutexLock lock(mutex_);
  ++queue.draining;
  bool in_time = true;
  while (queue.depth != 0 && in_time)
    in_time = clock_->wait_until(lock.native(), queue.drained, until);
  --queue.draining;
  return queue.depth == 0;
}

void LaneScheduler::reset(std::uint64_t core_bits) { change(&LaneTable::reset, core_bits); }

Result<std::uint64_t> LaneScheduler::generation() const {
  MutexLock lock(mutex_);
  return table_.loss().generation();
}

std::shared_ptr<const Generation> LaneScheduler::current_generation() const {
  MutexLock lock(mutex_);
  return table_.loss().current();
}

void LaneScheduler::log(std::string line) { change(&LaneTable::log, std::move(line)); }

/// The job that was struck is abandoned as all others: its result is dropped.
void LaneScheduler::lose(const LaneOccupant& struck) noexcept {
  change(&LaneTable::lose,
         text_or_none([&] { return fmt::format("an injected fault struck job {}", struck.id); }));
  try {
    clock_->call_at(clock_->now() + fault_point_->lost_for(), [weak = weak_from_this()] {
      if (const auto alive = weak.lock()) alive->change(&LaneTable::back);
    });
  } catch (...) {
    change(&LaneTable::back);  // There is no memory for a timer: the loss is a short one.
  }
}

Status LaneScheduler::set_arbiter(std::shared_ptr<const device::Arbiter> arbiter) {
  // Without one the table decides alike, and a newcomer on idle cores need not be compared.
  if (arbiter == device::fifo_arbiter()) arbiter = nullptr;
  change(&LaneTable::swap_arbiter, arbiter);
  return {};
}

Result<std::uint64_t> LaneScheduler::hold_cores(const LanedExecutable* executable,
                                                std::uint64_t core_bits,
                                                device::Residency residency) {
  return change(&LaneTable::hold_cores, executable, core_bits, residency);
}

Status LaneScheduler::join_residence(std::uint64_t residence, const LanedExecutable* executable) {
  return change(&LaneTable::join_residence, residence, executable);
}

void LaneScheduler::forget(const LanedExecutable* executable) {
  change(&LaneTable::forget, executable);
}

void LaneScheduler::release_cores(std::uint64_t residence) {
  change(&LaneTable::release_cores, residence);
}

}  // namespace corelane::lanes
