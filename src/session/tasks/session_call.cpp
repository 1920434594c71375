// One call: blocking, with a callback, with a future, as a batch.
#include <algorithm>
#include <cstring>

#include "base/guard.h"
#include "base/later.h"
#include "corelane/device/device.h"
#include "dispatch/interrupt_poll.h"
#include "session/tasks/future_state.h"
#include "session/tasks/perf_line.h"
#include "session/tasks/session_core.h"
#include "session/tasks/session_worker.h"

namespace corelane::session {
namespace {

/// Blocking calls that may be interrupted run in the caller's thread only where they are short.
constexpr Duration kShort = std::chrono::milliseconds(50);

/// Outputs bound to memory that nobody keeps, while their call may be left before its end: written
/// into memory of ours, and copied when it is done.
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
      std::memcpy(memory.data.get(), outputs[i].data.get(), memory.size);
      outputs[i].data = memory.data;
    }
  }

 private:
  std::vector<std::pair<std::size_t, Tensor>> lent_;
};

Status terminated_status() {
  return error(Code::kCancelled,
               "the call was terminated by its CallControl; reset() lets later calls run")
      .with(Detail::kGiven, "terminate");
}

}  // namespace

Status SessionCore::check_terms(const CallOptions& options) const {
  if (options.timeout < Duration{0} || options.submit_timeout < Duration{0}) {
    return error(Code::kInvalidArgument, "a timeout is negative; 0 means none");
  }
  if (options.priority < -128 || options.priority > 127) {
    return error(Code::kInvalidArgument, "the priority is {}; it must be -128 to 127",
                 options.priority);
  }
  if (options.control && options.control->terminated()) return terminated_status();
  return {};
}

/// Copies what the caller may change or free while the task is not resolved.
Status SessionCore::own_inputs(Call& call, const CallOptions& options, Caller caller) const {
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    CallInput& input = call.inputs[i];
    if (input.buffer != nullptr || input.captured) continue;
    const bool direct = model_.is_direct(i, input.view);
    // Whoever may leave before the end lends only what is kept.
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

Status SessionCore::attach(const std::shared_ptr<SessionTask>& task, const CallOptions& options) {
  if (!options.control) return {};
  ControlState& control = *options.control->state_;
  const std::lock_guard lock(control.mutex);
  if (control.terminated.load(std::memory_order_relaxed)) return terminated_status();
  if (control.calls.size() >= 64 && control.calls.size() == control.calls.capacity()) {
    std::erase_if(control.calls, [](const auto& c) { return c.second.expired(); });
  }
  control.calls.emplace_back(weak_from_this(), task);
  return {};
}

/// Nobody can stop a call that waits in its own thread for a core that another session has.
bool SessionCore::may_run_here(const CallOptions& options) const {
  if (!options.interrupted && !options.control) return true;
  const device::DeviceCounters counters = device_->counters();
  if (counters.submitted > counters.completed) return false;
  if (!options.interrupted) return true;
  const Duration average(average_.load(std::memory_order_relaxed));
  return average > Duration{0} && average < kShort;
}

Result<Outputs> SessionCore::run(Call call, const CallOptions& options) {
  CORELANE_TRY(check_terms(options));
  if (!may_run_here(options)) return run_queued(std::move(call), options);
  SessionWorker* worker = nullptr;
  std::uint64_t id = 0;
  {
    Lock lock(mutex_);
    // Who has to wait does so as a task that can be cancelled.
    const bool room = waiting_ == 0 && pending_callbacks_ < options_.max_pending_callbacks &&
                      !closing_ &&
                      (!options_.enable_pacing || pacer_.admit(clock_->now()) <= clock_->now());
    std::int32_t wanted = -1;
    const std::size_t lane = lane_of(next_id_, wanted);
    if (room) worker = take_idle(lanes_[lane], wanted, 0);
    if (worker != nullptr) {
      id = next_id_++;
      ++counted_.accepted;
      ++live_;
      if (options_.enable_pacing) pacer_.submitted(clock_->now());
    }
  }
  if (worker == nullptr) return run_queued(std::move(call), options);
  return run_here(std::move(call), options, *worker, id);
}

Result<Outputs> SessionCore::run_here(Call call, const CallOptions& options, SessionWorker& worker,
                                      std::uint64_t id) {
  CallTerms terms{options.tag.value_or(id), kNever, options.priority};
  const bool timed = perf_ || options.timeout > Duration{0};
  const TimePoint begin = timed ? clock_->now() : TimePoint{};
  if (options.timeout > Duration{0}) terms.deadline = later(begin, options.timeout);
  Status status = no_throw("a task", [&] { return worker.run(call, terms, *clock_); });
  const TimePoint end = perf_ ? clock_->now() : TimePoint{};
  const RunTimes times = worker.times();
  Duration copied{};
  if (status.ok()) {
    status = no_throw("reading the outputs", [&] { return worker.collect(call, copied, *clock_); });
  }
  if (perf_) {
    const Duration in = end - begin - times.queue - times.device - times.copy_out;
    print({id, worker.index(), std::max(worker.core(), 0), std::max(in, Duration{}), times.device,
           status.ok() ? times.copy_out + copied : Duration{}});
  }
  bool more = false;
  {
    const Lock lock(mutex_);
    give_back(worker, status, times.device);
    count(status);
    settled();
    more = waiting_ > 0;
  }
  if (more) pump();
  return outputs_of(call, status);
}

Result<Outputs> SessionCore::run_queued(Call call, const CallOptions& options) {
  CORELANE_TRY(own_inputs(call, options, Caller::kWaits));
  LentOutputs lent;
  if (options.interrupted) lent.replace(call);
  const auto task = make_task(std::move(call), options);
  task->maker_waits = true;
  const auto future = std::make_shared<FutureState>(clock_, callbacks_);
  task->future = future;
  CORELANE_TRY(attach(task, options));
  Entrance entrance(options);
  CORELANE_TRY(accept(task, options, entrance));
  Result<Outputs> result = wait_for(task, future, options);
  if (result) lent.give(*result);
  return result;
}

Result<Outputs> SessionCore::wait_for(const std::shared_ptr<SessionTask>& task,
                                      const std::shared_ptr<FutureState>& future,
                                      const CallOptions& options) {
  const bool resolved = future->wait(options.interrupted);
  if (!resolved) cancel(task);
  std::vector<CallInput> inputs;  // Given up in this thread.
  {
    const Lock lock(mutex_);
    task->maker_waits = false;
    if (task->resolved) inputs.swap(task->call.inputs);
  }
  if (resolved) return std::move(future->result);
  return error(dispatch::interrupted_status());
}

Result<std::uint64_t> SessionCore::run_async(Call call, RunCallback callback,
                                             const CallOptions& options) {
  CORELANE_TRY(check_terms(options));
  CORELANE_TRY(own_inputs(call, options, Caller::kGoesOn));
  const auto task = make_task(std::move(call), options);
  task->callback = std::move(callback);
  task->draws_ticket = true;
  CORELANE_TRY(attach(task, options));
  Entrance entrance(options);
  CORELANE_TRY(accept(task, options, entrance));
  return task->id;
}

Result<bool> SessionCore::try_accept(
    Call call, const CallOptions& options,
    const std::function<void(const std::shared_ptr<SessionTask>&)>& prepare) {
  CORELANE_TRY(check_terms(options));
  Entrance entrance(options);
  entrance.wait = false;
  {
    // Inputs are copied only when there is room for them.
    Lock lock(mutex_);
    const Status room = enter(lock, options, entrance, nullptr);
    if (room.code() == Code::kTimeout) return false;
    CORELANE_TRY(room);
  }
  CORELANE_TRY(own_inputs(call, options, Caller::kGoesOn));
  const auto task = make_task(std::move(call), options);
  prepare(task);
  CORELANE_TRY(attach(task, options));
  const Status accepted = accept(task, options, entrance);
  if (accepted.code() == Code::kTimeout) return false;
  CORELANE_TRY(accepted);
  return true;
}

Result<std::optional<std::uint64_t>> SessionCore::try_run_async(Call call, RunCallback callback,
                                                                const CallOptions& options) {
  std::shared_ptr<SessionTask> made;
  CORELANE_ASSIGN(const bool accepted, try_accept(std::move(call), options, [&](const auto& task) {
                    task->callback = std::move(callback);
                    task->draws_ticket = true;
                    made = task;
                  }));
  return accepted ? std::optional(made->id) : std::nullopt;
}

std::shared_ptr<FutureState> SessionCore::make_future(const std::shared_ptr<SessionTask>& task) {
  auto future = std::make_shared<FutureState>(clock_, callbacks_);
  future->core = weak_from_this();
  future->task = task;
  task->future = future;
  return future;
}

Result<std::shared_ptr<FutureState>> SessionCore::submit(Call call, const CallOptions& options) {
  CORELANE_TRY(check_terms(options));
  CORELANE_TRY(own_inputs(call, options, Caller::kGoesOn));
  const auto task = make_task(std::move(call), options);
  auto future = make_future(task);
  CORELANE_TRY(attach(task, options));
  Entrance entrance(options);
  CORELANE_TRY(accept(task, options, entrance));
  return future;
}

Result<std::shared_ptr<FutureState>> SessionCore::try_submit(Call call,
                                                             const CallOptions& options) {
  std::shared_ptr<FutureState> future;
  CORELANE_ASSIGN(const bool accepted, try_accept(std::move(call), options, [&](const auto& task) {
                    future = make_future(task);
                  }));
  return accepted ? future : nullptr;
}

}  // namespace corelane::session
