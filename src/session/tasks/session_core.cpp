// Submitting, starting, completing and delivering tasks.
#include "session/tasks/session_core.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/fork.h"
#include "base/guard.h"
#include "base/later.h"
#include "base/reserve.h"
#include "base/trust/file_size_signal.h"
#include "corelane/base/log.h"
#include "corelane/device/device.h"
#include "dispatch/callback_thread.h"
#include "session/tasks/batch_call.h"
#include "session/tasks/future_state.h"
#include "session/tasks/session_parts.h"
#include "session/tasks/session_task.h"
#include "session/tasks/session_worker.h"

namespace corelane::session {
namespace {

/// The session whose tasks this thread is starting further up its stack. A completion inside does
/// not start others, which would nest without end: it leaves them to that call.
struct StartingTasks {
  const SessionCore* core = nullptr;
  bool missed = false;  ///< A completion inside left a task to start.
};
thread_local StartingTasks starting;

/// Holds `starting` for one session.
class StartingScope {
 public:
  explicit StartingScope(const SessionCore* core)
      : outer_(std::exchange(starting, StartingTasks{core, false})) {}
  ~StartingScope() { starting = outer_; }
  StartingScope(const StartingScope&) = delete;
  StartingScope& operator=(const StartingScope&) = delete;

 private:
  const StartingTasks outer_;
};

/// Why a task that was cancelled did not run.
Status cancelled_status(bool terminated) {
  if (terminated) return terminated_status();
  return error(Code::kCancelled, "the call was cancelled before it started");
}

/// The cores that one task may take together.
std::optional<device::CoreSet> joined_cores(const SessionOptions& options,
                                            const device::DeviceInfo& device) {
  // A schedule may name a core several times.
  const std::vector<std::size_t> cores = dispatch::unique_cores(options.schedule);
  if (options.placement != PlacementPolicy::kAdaptive || cores.size() < 2 ||
      !device.capabilities.multi_core_jobs) {
    return std::nullopt;
  }
  std::uint64_t bits = 0;
  for (const std::size_t core : cores) bits |= std::uint64_t{1} << core;
  return device::CoreSet::mask(bits);
}

}  // namespace

SessionCore::SessionCore(SessionParts parts)
    : options_(std::move(parts.options)),
      device_(parts.programs.front().device()),
      clock_(device_->clock()),
      model_(parts.programs.front().description(), parts.contexts.front().inputs(),
             parts.contexts.front().outputs(), options_),
      warnings_(std::move(parts.warnings)),
      fork_count_(fork_count()),
      perf_(options_.print_perf.value_or(false)),
      duplicated_(parts.duplicated),
      context_cores_(parts.cores),
      all_cores_(joined_cores(options_, device_->info())),
      threads_(clock_, kLogPart),
      queue_(options_, parts.cores, device_->info().cores.size(), all_cores_.has_value()),
      order_(options_.sequential_callbacks),
      programs_(std::move(parts.programs)) {
  for (std::size_t i = 0; i < parts.contexts.size(); ++i) {
    const std::int32_t core = parts.cores[i];
    const device::CoreSet set =
        core < 0 ? parts.any_cores : device::CoreSet::mask(std::uint64_t{1} << core);
    workers_.push_back(std::make_unique<SessionWorker>(std::move(parts.contexts[i]), model_,
                                                       options_, set, core, i));
  }
}

/// Not joined: the last reference may go in one of these threads itself.
SessionCore::~SessionCore() { threads_.stop(); }

bool SessionCore::forked() const noexcept { return fork_count() != fork_count_; }

Status forked_status(std::string_view what) {
  return error(Code::kWrongState,
               "{} before this process forked, and its threads stayed in the parent; start workers "
               "by spawn or exec (in Python: multiprocessing's 'spawn'), or fork before the first "
               "session is made",
               what);
}

Status terminated_status() {
  return error(Code::kCancelled,
               "the call was terminated by its CallControl; reset() lets later calls run")
      .with(Detail::kGiven, "terminate");
}

Status SessionCore::usable() const {
  if (!forked()) return {};
  return forked_status("the session was made");
}

Status SessionCore::enter(MutexLock& lock, Submission& submission, const SessionTask* task) {
  const CallOptions& options = submission.options;
  Entrance entrance;
  // Of any session: two whose callbacks call each other would wait for each other.
  entrance.in_callback =
      dispatch::CallbackThread::any_is_current() || (task != nullptr && task->call.bound);
  TimePoint since{};
  // Decided anew after each wait: others may have entered, or the session been closed.
  for (bool first = true;; first = false) {
    if (queue_.closed()) return error(Code::kWrongState, "the session is closed; make a new one");
    if (task != nullptr && task->progress.state() == TaskState::kRefused)
      return cancelled_status(task->terminated);
    // The usual case, without reading the clock.
    if (!options_.enable_pacing && queue_.has_room(entrance.in_callback)) return {};
    const TimePoint now = clock_->now();
    if (first) {
      const Duration limit =
          options.submit_timeout > Duration{0} ? options.submit_timeout : options_.submit_timeout;
      since = now;
      entrance.deadline = submission.waits ? later(now, limit) : now;
    }
    const dispatch::AdmissionAnswer answer = queue_.admit(entrance, now);
    if (answer.what == dispatch::Admission::kEnter) return {};
    if (dispatch::is_refusal(answer.what)) return queue_.refused(answer.what, now - since);
    CORELANE_TRY(submission.poll.wait(*clock_, lock, room_, answer.wait_until));
  }
}

Status SessionCore::submit_task(const std::shared_ptr<SessionTask>& task, Submission& submission) {
  CORELANE_TRY(attach(task, submission.options));
  std::function<void()> expire;  // Made here: once the task is accepted, nothing may fail.
  if (task->timeout > Duration{0}) {
    expire = [weak = weak_from_this(), task] {
      if (const auto core = weak.lock()) core->expire(task);
    };
  }
  std::optional<Start> next;
  {
    MutexLock lock(mutex_);
    // The number is given only after this, so that refused calls leave no gap.
    CORELANE_TRY(enter(lock, submission, task.get()));
    queue_.accept(task, clock_->now());
    if (task->draws_ticket) task->ticket = order_.draw();
    if (task->batch != nullptr) task->batch->accepted(*task);
    if (task->future != nullptr) task->future->task_id.store(task->id, std::memory_order_relaxed);
    next = next_start_here();
    // A task that was given a context at once is timed out by the device.
    if (task->timeout > Duration{0} && task->progress.state() == TaskState::kWaiting)
      task->timer = clock_->call_at(task->deadline, std::move(expire));
  }
  start_tasks(std::move(next), false);
  return {};
}

SessionCore::Start SessionCore::start_of(Assignment assignment) {
  SessionWorker* const worker = workers_[assignment.context].get();
  if (all_cores_) worker->widen(assignment.all_cores ? all_cores_ : std::nullopt);
  return {std::move(assignment.task), assignment.id, worker};
}

std::optional<SessionCore::Start> SessionCore::next_start_here() {
  if (starting.core != this) return next_start();
  starting.missed = true;
  return std::nullopt;
}

std::optional<SessionCore::Start> SessionCore::next_start() {
  std::optional<Assignment> next = queue_.start_next();
  if (!next) return std::nullopt;
  room_.notify_all();
  return start_of(std::move(*next));
}

void SessionCore::start_tasks(std::optional<Start> next, bool from_callback) noexcept {
  if (!next) return;
  // Completions inside leave their tasks to this loop: a device that completes at once would nest
  // without end.
  const StartingScope scope(this);
  while (next) {
    next = start(*next, from_callback);
    // A completion inside has released a context: look once more.
    if (next || !std::exchange(starting.missed, false)) continue;
    const MutexLock lock(mutex_);
    next = next_start();
  }
}

std::optional<SessionCore::Start> SessionCore::start(const Start& start,
                                                     bool from_callback) noexcept {
  const std::shared_ptr<SessionTask>& task = start.task;
  SessionWorker& worker = *start.worker;
  if (task->timer) clock_->cancel(*task->timer);
  RunOptions options;
  options.tag = task->tag.value_or(task->id);
  options.priority = task->priority;
  options.from_callback = from_callback;
  if (start.waits_for_room) {
    options.room_until = kNever;
    options.give_up = {task, &task->given_up};
  }
  const TimePoint begin = perf_ ? clock_->now() : TimePoint{};
  Result<Inference> started = no_throw("starting a task", [&] {
    return worker.start(task->call, std::move(options), task->deadline, *clock_);
  });
  if (!started && started.error().code() == Code::kBusy && !start.waits_for_room &&
      await_room(start)) {
    return std::nullopt;
  }
  if (!started) {
    complete(worker, task, std::move(started).error(), {}, {});
    return std::nullopt;
  }
  if (perf_) task->set_input += clock_->now() - begin;
  bool cancelled = false;
  std::optional<Start> next;
  {
    const MutexLock lock(mutex_);
    // Before on_done(): the completing thread reads it without the lock.
    task->inference = *started;
    cancelled = !queue_.submitted(*task);
    next = next_start();
  }
  // cancel() came while the task was being started and found no inference to cancel. Where it has
  // begun to run, its outputs are dropped.
  if (cancelled) started->cancel();
  started->on_done(sure_once<void(const Status&)>(
      [core = shared_from_this(), worker = &worker, task](const Status& status) {
        const Inference& inference = task->inference;
        if (!status.ok())
          for (auto& inputs : core->abandoned_.keep(inference, task->call))
            core->drop(std::move(inputs));
        core->complete(*worker, task, worker->ended(status, task->deadline, *core->clock_),
                       inference.times(), inference.record());
      }));
  return next;
}

bool SessionCore::await_room(const Start& refused) noexcept {
  Start again = refused;
  again.waits_for_room = true;
  auto job = sure_once<void()>(
      [core = shared_from_this(), start = std::move(again)] { core->start_awaited(start); });
  const MutexLock lock(mutex_);
  // Posted under the lock: the thread that finds room takes it afterwards.
  if (!threads_.room->post(job).ok()) return false;
  queue_.await_room(refused.task->lane);
  starting.missed = true;  // Tasks of other lanes may start.
  return true;
}

void SessionCore::start_awaited(const Start& awaited) noexcept {
  std::optional<Start> next = start(awaited, false);
  {
    const MutexLock lock(mutex_);
    queue_.room_found(awaited.task->lane);
    if (!next) next = next_start();
  }
  start_tasks(std::move(next), false);
}

void SessionCore::complete(SessionWorker& worker, const std::shared_ptr<SessionTask>& task,
                           Status status, const RunTimes& times,
                           const device::JobRecord& record) noexcept {
  const TimePoint begin = perf_ ? clock_->now() : TimePoint{};
  if (status.ok())
    status = no_throw("collecting outputs", [&] { return worker.collect(task->call); });
  if (perf_) {
    const Duration copied = clock_->now() - begin;
    print({task->id, worker.index(), std::max(worker.core(), 0), task->set_input + times.copy_in,
           times.device, status.ok() ? times.copy_out + copied : Duration{}});
  }
  Inference done;  // Released without the lock, as are the inputs.
  std::vector<CallInput> inputs;
  std::optional<Start> next;
  {
    const MutexLock lock(mutex_);
    release(worker, status, times);
    // cancel() has answered true, though it may have come too late for the device.
    if (task->progress.state() == TaskState::kStopping) status = cancelled_status(task->terminated);
    queue_.complete(*task, status, record.core_bits != 0);
    if (task->terminated && status.code() == Code::kCancelled) status = terminated_status();
    // An inference keeps its context: it must not live as long as a future does. Its maker, who
    // waits, takes it in wait_for().
    if (!task->maker_waits) std::swap(done, task->inference);
    inputs = take_inputs(*task);
    next = next_start_here();
  }
  // The core gets its next task before the result is delivered. In a callback of the device: one
  // that completed within a start leaves its task to start_tasks() further up the stack.
  start_tasks(std::move(next), true);
  deliver(*task, status);
  drop(std::move(inputs));
}

void SessionCore::release(const SessionWorker& worker, const Status& status,
                          const RunTimes& times) {
  queue_.release(worker.index(), status, times.device, times.queue);
  if (model_.has_open_shapes() && status.ok() && ShortRuns::is_short(times.device))
    short_runs_.note(worker.shapes());
}

std::vector<CallInput> SessionCore::take_inputs(SessionTask& task) noexcept {
  std::vector<CallInput> inputs;
  if (!task.maker_waits) inputs.swap(task.call.inputs);
  return inputs;
}

void SessionCore::deliver_withdrawn(const std::shared_ptr<SessionTask>& task,
                                    const Status& status) noexcept {
  if (task->timer) clock_->cancel(*task->timer);
  std::vector<CallInput> inputs;
  {
    const MutexLock lock(mutex_);
    inputs = take_inputs(*task);
  }
  deliver(*task, status);
  drop(std::move(inputs));
}

void SessionCore::expire(const std::shared_ptr<SessionTask>& task) noexcept {
  {
    const MutexLock lock(mutex_);
    // It has been started meanwhile, and the device has the deadline.
    if (!queue_.withdraw(*task)) return;
    room_.notify_all();
  }
  deliver_withdrawn(task, error(Code::kTimeout, "the task's time was over before a core was free"));
}

bool SessionCore::cancel(const std::shared_ptr<SessionTask>& task, bool terminated) {
  if (forked()) return false;
  Cancellation answer{};
  Inference inference;
  {
    const MutexLock lock(mutex_);
    task->terminated = task->terminated || terminated;
    answer = queue_.cancel(*task);
    if (answer == Cancellation::kRunning) inference = task->inference;
    if (answer == Cancellation::kStopping) task->given_up = true;
    room_.notify_all();
  }
  if (answer == Cancellation::kRunning) return inference.cancel();
  if (answer == Cancellation::kWithdrawn) deliver_withdrawn(task, cancelled_status(terminated));
  return answer != Cancellation::kTooLate;
}

bool SessionCore::started(const std::shared_ptr<SessionTask>& task) const {
  if (task == nullptr) return true;
  const MutexLock lock(mutex_);
  const TaskState state = task->progress.state();
  return state != TaskState::kEntering && state != TaskState::kWaiting;
}

Result<Outputs> outputs_of(Call& call, const Status& status) {
  if (!status.ok()) return error(status);
  Outputs outputs;
  outputs.reserve(call.outputs.size());
  if (call.order.empty())
    for (CallOutput& output : call.outputs) outputs.push_back(std::move(output.tensor));
  else
    for (const std::size_t i : call.order) outputs.push_back(call.outputs[i].tensor);
  return outputs;
}

void SessionCore::deliver(SessionTask& task, const Status& status) noexcept {
  if (task.batch != nullptr) {
    if (task.batch->complete(task.sample, task.call, status))
      deliver_batch(*task.batch, 1);
    else
      tasks_delivered(1);
    return;
  }
  Result<Outputs> result =
      no_throw("the outputs of a call", [&] { return outputs_of(task.call, status); });
  if (task.callback) {
    deliver_to_callback(task.ticket, task.id, std::move(task.callback), std::move(result), 1);
    task.callback = nullptr;
    return;
  }
  task.future->resolve(std::move(result));
  tasks_delivered(1);
}

void SessionCore::deliver_batch(BatchCall& batch, std::size_t delivered_tasks) noexcept {
  Result<Outputs> result = no_throw("the outputs of a batch", [&] { return batch.result(); });
  if (batch.callback) {
    deliver_to_callback(batch.ticket, batch.first_id, std::move(batch.callback), std::move(result),
                        delivered_tasks);
    batch.callback = nullptr;
    return;
  }
  batch.future->resolve(std::move(result));
  tasks_delivered(delivered_tasks);
}

void SessionCore::tasks_delivered(std::size_t tasks) {
  const MutexLock lock(mutex_);
  queue_.delivered(tasks);
  if (queue_.quiet()) quiet_.notify_all();
}

void SessionCore::deliver_to_callback(std::uint64_t ticket, std::uint64_t id, RunCallback callback,
                                      Result<Outputs> result,
                                      std::size_t delivered_tasks) noexcept {
  auto job = sure_once<void()>([core = shared_from_this(), id, call = std::move(callback),
                                value = std::move(result)]() mutable {
    run_callback(kLogPart, "a callback", [&] { call(id, std::move(value)); });
    core->callback_returned();
  });
  Status posted;
  SureVector<std::function<void()>> here;
  {
    const MutexLock lock(mutex_);
    // Pending before it is delivered, so that the session is never quiet in between.
    queue_.callback_pending();
    queue_.delivered(delivered_tasks);
    // Posted under the lock, so that two threads cannot swap what the order has put in order.
    for (auto& ready : order_.complete(ticket, std::move(job)))
      if (posted = threads_.callbacks->post(ready); !posted.ok()) here.push_back(std::move(ready));
  }
  if (!here.empty()) log::error(kLogPart, "calling back in place: {}", posted.message());
  for (const auto& f : here) run_callback(kLogPart, "a callback", f);
}

void SessionCore::callback_returned() {
  const MutexLock lock(mutex_);
  if (queue_.callback_returned()) room_.notify_all();
  if (queue_.quiet()) quiet_.notify_all();
}

void SessionCore::drop(std::vector<CallInput> inputs) noexcept {
  const bool lent = std::any_of(inputs.begin(), inputs.end(), [](const CallInput& input) {
    return input.keep != nullptr && !input.captured;
  });
  // Memory of the session may be freed anywhere.
  if (!lent) return;
  threads_.callbacks->post_or_call(
      sure_once<void()>([held = std::move(inputs)]() mutable { held.clear(); }));
}

void SessionCore::print(const PerfFigures& figures) const noexcept {
  run_callback(kLogPart, "perf_sink", [&] {
    const std::string line = perf_line(figures);
    if (options_.perf_sink) {
      options_.perf_sink(line);
      return;
    }
    const NoFileSizeSignal lost_instead;        // Where stderr is a file that may not grow.
    std::fputs((line + "\n").c_str(), stderr);  // One call, so that lines of threads stay whole.
  });
}

}  // namespace corelane::session
