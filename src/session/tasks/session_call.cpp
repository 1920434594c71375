// The calls of a session: blocking, with a callback, with a future.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/guard.h"
#include "base/later.h"
#include "corelane/device/device.h"
#include "session/tasks/control_state.h"
#include "session/tasks/future_state.h"
#include "session/tasks/session_core.h"
#include "session/tasks/session_task.h"
#include "session/tasks/session_worker.h"

namespace corelane::session {
namespace {

/// A model with open shapes and more nodes is not looked at before its first run.
constexpr std::uint64_t kFewNodes = 400;

/// Outputs bound to memory without a keep_alive, for a call whose caller may return before its end:
/// they are written to memory of the session, and copied when the call is done.
class LentOutputs {
 public:
  void replace(Call& call) {
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      CallOutput& output = call.outputs[i];
      if (!output.given || output.buffer != nullptr || output.tensor.data.use_count() > 0) continue;
      const auto bytes = std::make_shared<ByteVector>(output.tensor.size);
      lent_.emplace_back(i, output.tensor);
      output.tensor.data = std::shared_ptr<void>(bytes, bytes->data());
    }
  }
  void give(Outputs& outputs) const {
    for (const auto& [i, memory] : lent_) {
      Tensor& result = outputs[i];
      // What lies after the result is not the call's to write.
      const std::size_t bytes =
          storage_bytes(result.shape, result.dtype, result.layout).value_or(memory.size);
      std::memcpy(memory.data.get(), result.data.get(), std::min(bytes, memory.size));
      result.data = memory.data;
    }
  }

 private:
  std::vector<std::pair<std::size_t, Tensor>> lent_;
};

}  // namespace

Status SessionCore::check(const CallOptions& options) const {
  if (options.timeout < Duration{0} || options.submit_timeout < Duration{0})
    return error(Code::kInvalidArgument, "a timeout is negative; 0 means none");
  if (options.priority < -128 || options.priority > 127) {
    return error(Code::kInvalidArgument, "the priority is {}; it must be -128 to 127",
                 options.priority);
  }
  if (options.control && options.control->terminated()) return terminated_status();
  return {};
}

Status SessionCore::own_inputs(Call& call, const CallOptions& options, Caller caller) const {
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    CallInput& input = call.inputs[i];
    if (input.buffer != nullptr || input.captured) continue;
    const bool direct = model_.is_direct(i, input.view);
    // A caller that may return early must have given a keep_alive, or its input is copied.
    const bool stays = caller == Caller::kWaits && options.interrupted
                           ? input.keep != nullptr
                           : caller == Caller::kWaits || options.borrow;
    if (direct && stays) continue;
    CORELANE_TRY(model_.capture(i, input));
  }
  return {};
}

std::shared_ptr<SessionTask> SessionCore::make_task(Call call, const CallOptions& options) {
  auto task = std::make_shared<SessionTask>();
  task->call = std::move(call);
  task->timeout = options.timeout;
  task->priority = options.priority;
  task->tag = options.tag;
  return task;
}

std::shared_ptr<FutureState> SessionCore::make_future() {
  auto future = std::make_shared<FutureState>(clock_, threads_.continuations);
  future->core = weak_from_this();
  return future;
}

Status SessionCore::attach(const std::shared_ptr<SessionTask>& task, const CallOptions& options) {
  if (!options.control) return {};
  ControlState& control = *options.control->state_;
  const MutexLock lock(control.mutex);
  if (control.terminated.load(std::memory_order_relaxed)) return terminated_status();
  // Forgets ended calls only when the list would grow, and not while it is short.
  if (control.calls.size() >= 64 && control.calls.size() == control.calls.capacity())
    std::erase_if(control.calls, [](const auto& c) { return c.second.expired(); });
  control.calls.emplace_back(weak_from_this(), task);
  return {};
}

/// A call in its caller's thread cannot be cancelled: one that may have to wait there, for a core
/// that another session uses, becomes a task if its caller may want to stop it.
bool SessionCore::may_run_in_place(const CallOptions& options) const {
  if (!options.interrupted && !options.control) return true;
  // Work of others on the device: this call might have to wait for it.
  const device::DeviceCounters counters = device_->counters();
  if (counters.submitted > counters.completed) return false;
  return true;
}

/// Calls that may be interrupted run in their caller's thread, where nobody asks, if they are
/// short. The average says nothing of other shapes.
bool SessionCore::is_short(const Call& call) const {
  return ShortRuns::is_short(queue_.average_device_time()) &&
         (!model_.has_open_shapes() || short_runs_.cover(call.inputs));
}

bool SessionCore::has_little_work(const Program& program, const Call& call) const {
  if (!device_->info().capabilities.bounded_jobs) return false;
  if (!model_.has_open_shapes()) return ShortRuns::is_short(program.work());
  // To look at more nodes takes longer than to hand the call to a task.
  if (model_.description().node_count > kFewNodes) return false;
  std::vector<Shape> shapes;
  shapes.reserve(call.inputs.size());
  for (const CallInput& input : call.inputs) shapes.push_back(input.view.shape);
  return ShortRuns::is_short(program.work(shapes));
}

std::optional<SessionCore::Start> SessionCore::start_in_place(const Call& call,
                                                              const CallOptions& options) {
  if (!may_run_in_place(options)) return std::nullopt;
  // Without a pace the time is not needed, and reading it is not free.
  const TimePoint now = options_.enable_pacing ? clock_->now() : TimePoint{};
  MutexLock lock(mutex_);
  if (options.interrupted && !is_short(call)) {
    const bool first = queue_.average_device_time() == Duration{0} && !programs_.empty();
    if (!first) return std::nullopt;
    const Program program = programs_.front();
    lock.unlock();
    const bool little = has_little_work(program, call);
    lock.lock();
    if (!little) return std::nullopt;
  }
  // Context and number are taken under one lock: tasks are numbered in the order in which they
  // start.
  std::optional<Assignment> taken = queue_.start_in_place(now);
  if (!taken) return std::nullopt;
  return start_of(std::move(*taken));
}

Result<Outputs> SessionCore::run(Call&& call, const CallOptions& options) {
  CORELANE_TRY(check(options));
  const std::optional<Start> start = start_in_place(call, options);
  // If it must wait, it does so as a task, so that it can be cancelled.
  if (!start) return run_queued(std::move(call), options);
  const Status status = run_in_place(call, options, *start);
  return outputs_of(call, status);
}

Status SessionCore::run_bound(Call& call, const CallOptions& options, Outputs& results) {
  CORELANE_TRY(check(options));
  const std::optional<Start> start = start_in_place(call, options);
  if (!start) {
    CORELANE_ASSIGN(results, run_queued(Call(call), options));
    return {};
  }
  Status status = run_in_place(call, options, *start);
  if (!status.ok()) {
    for (CallOutput& output : call.outputs)
      if (!output.given) output.tensor = {};
    return status;
  }
  if (!results.empty()) return status;
  results.reserve(call.outputs.size());
  for (CallOutput& output : call.outputs)
    results.push_back(output.given ? output.tensor : std::exchange(output.tensor, {}));
  return status;
}

Status SessionCore::run_in_place(Call& call, const CallOptions& options, const Start& start) {
  SessionWorker& worker = *start.worker;
  RunOptions run;
  run.tag = options.tag.value_or(start.id);
  run.priority = options.priority;
  run.room_until = kNever;
  const bool timed = perf_ || options.timeout > Duration{0};
  const TimePoint begin = timed ? clock_->now() : TimePoint{};
  const TimePoint deadline = options.timeout > Duration{0} ? later(begin, options.timeout) : kNever;
  // The context must be released whatever the engine throws.
  Status status = no_throw("running a call",
                           [&] { return worker.run(call, std::move(run), deadline, *clock_); });
  const TimePoint end = perf_ ? clock_->now() : TimePoint{};
  const RunTimes times = worker.times();
  if (status.ok()) status = no_throw("collecting outputs", [&] { return worker.collect(call); });
  if (perf_) {
    const Duration copied = clock_->now() - end;
    const Duration in = end - begin - times.queue - times.device - times.copy_out;
    print({start.id, worker.index(), std::max(worker.core(), 0), std::max(in, Duration{}),
           times.device, status.ok() ? times.copy_out + copied : Duration{}});
  }
  std::optional<Start> next;
  {
    const MutexLock lock(mutex_);
    release(worker, status, times);
    queue_.complete_in_place(status);
    if (queue_.quiet()) quiet_.notify_all();
    next = next_start_here();
  }
  start_tasks(std::move(next), false);
  return status;
}

Result<Outputs> SessionCore::run_queued(Call call, const CallOptions& options) {
  CORELANE_TRY(own_inputs(call, options, Caller::kWaits));
  LentOutputs lent;
  if (options.interrupted) lent.replace(call);
  const auto task = make_task(std::move(call), options);
  // So that what the caller lent is released in its own thread, by wait_for().
  task->maker_waits = true;
  const auto future = make_future();
  task->future = future;
  Submission submission(options);
  CORELANE_TRY(submit_task(task, submission));
  Result<Outputs> result = wait_for(task, *future, options);
  if (result) lent.give(*result);
  return result;
}

Result<Outputs> SessionCore::wait_for(const std::shared_ptr<SessionTask>& task, FutureState& future,
                                      const CallOptions& options) {
  if (future.wait(options.interrupted)) {
    Inference ended = std::exchange(task->inference, {});
    Result<Outputs> result = future.take();
    // With the device reset or lost under it, a call is done while the engine may still read what
    // the caller has lent until this returns. With a time limit it never reads that.
    const bool limited = task->deadline != kNever || options_.run_timeout > Duration{0};
    if (!result && !limited) static_cast<void>(ended.wait_released());
    task->call.inputs.clear();  // Released in this thread: the session is through with the task.
    return result;
  }
  cancel(task);
  std::vector<CallInput> inputs;
  {
    const MutexLock lock(mutex_);
    task->maker_waits = false;
    // Else the thread that completes the task releases them: it has seen `maker_waits` cleared.
    if (task->progress.state() == TaskState::kDone) inputs.swap(task->call.inputs);
  }
  return error(dispatch::interrupted_status());
}

Result<bool> SessionCore::submit_call(const std::shared_ptr<SessionTask>& task,
                                      const CallOptions& options, bool waits) {
  CORELANE_TRY(check(options));
  Submission submission(options, waits);
  Status status;
  if (!waits) {
    MutexLock lock(mutex_);  // Inputs are copied only when there is room for them.
    status = enter(lock, submission, nullptr);
  }
  if (status.ok()) status = own_inputs(task->call, options, Caller::kGoesOn);
  if (status.ok()) status = submit_task(task, submission);
  if (!waits && status.code() == Code::kTimeout) return false;
  CORELANE_TRY(status);
  return true;
}

Result<std::optional<std::uint64_t>> SessionCore::run_async(Call call, RunCallback callback,
                                                            const CallOptions& options,
                                                            bool waits) {
  const auto task = make_task(std::move(call), options);
  task->callback = std::move(callback);
  task->draws_ticket = true;
  CORELANE_ASSIGN(const bool taken, submit_call(task, options, waits));
  return taken ? std::optional(task->id) : std::nullopt;
}

Result<std::shared_ptr<FutureState>> SessionCore::submit(Call call, const CallOptions& options,
                                                         bool waits) {
  const auto task = make_task(std::move(call), options);
  const auto future = make_future();
  future->task = task;
  task->future = future;
  CORELANE_ASSIGN(const bool taken, submit_call(task, options, waits));
  return taken ? future : nullptr;
}

}  // namespace corelane::session
