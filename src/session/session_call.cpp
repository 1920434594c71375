// One call: blocking, with a callback, with a future, as a batch.
#include <algorithm>

#include "session/batch_call.h"
#include "session/future_state.h"
#include "session/interrupt_poll.h"
#include "session/perf_line.h"
#include "session/session_core.h"
#include "session/session_worker.h"

namespace corelane::session {
namespace {

/// Blocking calls that may be interrupted run in the caller's thread only where they are short.
constexpr Duration kShort = std::chrono::milliseconds(50);

Status terminated_status() {
  return failure(Code::kCancelled, "the call was terminated by its CallControl");
}

}  // namespace

Status SessionCore::check_terms(const CallOptions& options) const {
  if (options.timeout < Duration{0} || options.submit_timeout < Duration{0}) {
    return failure(Code::kInvalidArgument, "a timeout is negative; 0 means none");
  }
  if (options.priority < -128 || options.priority > 127) {
    return failure(Code::kInvalidArgument, "the priority is {}; it must be -128 to 127",
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
    const bool stays = options.borrow || (caller == Caller::kWaits &&
                                          (!options.interrupted || input.keep != nullptr));
    if (direct && stays) continue;
    CORELANE_RETURN_IF_ERROR(model_.capture(i, input));
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

bool SessionCore::may_run_here(const CallOptions& options) const {
  if (!options.interrupted) return true;
  const Duration average(average_.load(std::memory_order_relaxed));
  return average > Duration{0} && average < kShort;
}

Result<Outputs> SessionCore::run(Call call, const CallOptions& options) {
  CORELANE_TRY(check_terms(options));
  if (!may_run_here(options)) return run_queued(std::move(call), options);
  CallTerms terms{0, options.timeout, options.priority};
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
  terms.tag = options.tag.value_or(id);
  const TimePoint begin = perf_ ? clock_->now() : TimePoint{};
  Status status = worker->run(call, terms);
  const TimePoint end = perf_ ? clock_->now() : TimePoint{};
  const RunTimes times = worker->times();
  Duration copied{};
  if (status.ok()) status = worker->collect(call, copied, *clock_);
  if (perf_) {
    const Duration in = end - begin - times.queue - times.device - times.copy_out;
    print({id, worker->index(), std::max(worker->core(), 0), std::max(in, Duration{}), times.device,
           status.ok() ? times.copy_out + copied : Duration{}});
  }
  bool more = false;
  {
    const Lock lock(mutex_);
    give_back(*worker, status, times.device);
    count(status);
    settled();
    more = waiting_ > 0;
  }
  if (more) pump();
  return outputs_of(call, status);
}

Result<Outputs> SessionCore::run_queued(Call call, const CallOptions& options) {
  CORELANE_TRY(own_inputs(call, options, Caller::kWaits));
  const auto task = make_task(std::move(call), options);
  const auto future = std::make_shared<FutureState>(clock_, callbacks_);
  task->future = future;
  CORELANE_TRY(attach(task, options));
  CORELANE_TRY(accept(task, options, true));
  return wait_for(task, future, options);
}

Result<Outputs> SessionCore::wait_for(const std::shared_ptr<SessionTask>& task,
                                      const std::shared_ptr<FutureState>& future,
                                      const CallOptions& options) {
  if (future->wait(options.interrupted)) return std::move(future->result);
  cancel(task);
  return tl::unexpected<Status>(interrupted_status());
}

Result<std::uint64_t> SessionCore::run_async(Call call, RunCallback callback,
                                             const CallOptions& options) {
  CORELANE_TRY(check_terms(options));
  CORELANE_TRY(own_inputs(call, options, Caller::kGoesOn));
  const auto task = make_task(std::move(call), options);
  task->callback = std::move(callback);
  task->draws_ticket = true;
  CORELANE_TRY(attach(task, options));
  CORELANE_TRY(accept(task, options, true));
  return task->id;
}

Result<std::optional<std::uint64_t>> SessionCore::try_run_async(Call call, RunCallback callback,
                                                                const CallOptions& options) {
  CORELANE_TRY(check_terms(options));
  {
    // Inputs are copied only when there is room for them.
    Lock lock(mutex_);
    const Status room = enter(lock, options, false, nullptr);
    if (room.code() == Code::kTimeout) return std::optional<std::uint64_t>();
    CORELANE_TRY(room);
  }
  CORELANE_TRY(own_inputs(call, options, Caller::kGoesOn));
  const auto task = make_task(std::move(call), options);
  task->callback = std::move(callback);
  task->draws_ticket = true;
  CORELANE_TRY(attach(task, options));
  const Status accepted = accept(task, options, false);
  if (accepted.code() == Code::kTimeout) return std::optional<std::uint64_t>();
  CORELANE_TRY(accepted);
  return std::optional<std::uint64_t>(task->id);
}

Result<std::shared_ptr<FutureState>> SessionCore::submit(Call call, const CallOptions& options) {
  CORELANE_TRY(check_terms(options));
  CORELANE_TRY(own_inputs(call, options, Caller::kGoesOn));
  const auto task = make_task(std::move(call), options);
  auto future = std::make_shared<FutureState>(clock_, callbacks_);
  future->core = weak_from_this();
  future->task = task;
  task->future = future;
  CORELANE_TRY(attach(task, options));
  CORELANE_TRY(accept(task, options, true));
  return future;
}

Status SessionCore::prepare_batch(const CallOptions& options, BatchCall& batch,
                                  Call& prototype) const {
  CORELANE_RETURN_IF_ERROR(model_.choose_outputs(options.outputs, prototype));
  batch.order = prototype.order;
  batch.parts.resize(batch.samples);
  const auto& descs = model_.native_outputs();
  const bool known =
      !model_.has_open_shapes() &&
      std::all_of(prototype.outputs.begin(), prototype.outputs.end(), [&](const CallOutput& o) {
        return descs[o.index].shape.is_static() && descs[o.index].shape.rank() > 0;
      });
  if (!known) return {};  // Put together when all are done.
  for (const CallOutput& output : prototype.outputs) {
    const TensorDesc& desc = descs[output.index];
    Shape shape = desc.shape;
    shape[0] *= static_cast<std::int64_t>(batch.samples);
    CallOutput& whole = batch.outputs.emplace_back();
    whole.index = output.index;
    CORELANE_ASSIGN_OR_STATUS(
        whole.tensor, Tensor::allocate(desc.name, model_.result_dtype(output.index, desc.dtype),
                                       std::move(shape)));
    whole.tensor.quant = model_.result_quant(output.index);
  }
  return {};
}

Call SessionCore::sample_call(const BatchCall& batch, const Call& prototype,
                              const std::vector<CallInput>& inputs, std::size_t sample) {
  Call call;
  call.inputs = sample_of(inputs, sample);
  if (batch.outputs.empty()) {
    call.outputs = prototype.outputs;
    return call;
  }
  for (const CallOutput& whole : batch.outputs) {
    CallOutput& part = call.outputs.emplace_back(whole);
    part.given = true;
    part.tensor.shape[0] /= static_cast<std::int64_t>(batch.samples);
    part.tensor.size /= batch.samples;
    auto* first = static_cast<std::byte*>(whole.tensor.data.get());
    part.tensor.data = std::shared_ptr<void>(whole.tensor.data, first + sample * part.tensor.size);
  }
  return call;
}

Result<std::shared_ptr<FutureState>> SessionCore::submit_batch(std::vector<CallInput> inputs,
                                                               const CallOptions& options,
                                                               Caller caller,
                                                               RunCallback callback) {
  CORELANE_TRY(check_terms(options));
  auto batch = std::make_shared<BatchCall>();
  CORELANE_ASSIGN(batch->samples, count_samples(model_, inputs));
  Call prototype;
  CORELANE_TRY(prepare_batch(options, *batch, prototype));
  Call whole;
  whole.inputs = std::move(inputs);
  CORELANE_TRY(own_inputs(whole, options, caller));
  batch->future = std::make_shared<FutureState>(clock_, callbacks_);
  batch->future->core = weak_from_this();
  batch->future->batch = batch;
  batch->callback = std::move(callback);
  Status status;
  for (std::size_t k = 0; k < batch->samples && status.ok(); ++k) {
    const auto task = make_task(sample_call(*batch, prototype, whole.inputs, k), options);
    task->batch = batch;
    task->sample = k;
    task->draws_ticket = batch->callback != nullptr && k + 1 == batch->samples;
    {
      const std::lock_guard lock(batch->mutex);
      ++batch->accepted;
      batch->tasks.push_back(task);
    }
    status = attach(task, options);
    if (status.ok()) status = accept(task, options, true);
    if (!status.ok()) {
      const std::lock_guard lock(batch->mutex);
      --batch->accepted;
    }
    if (k == 0) {
      batch->first_id = task->id;
      batch->future->task_id.store(task->id, std::memory_order_relaxed);
    }
  }
  if (!status.ok()) batch->callback = nullptr;
  if (batch->close(status)) resolve_batch(*batch);
  if (status.ok()) return batch->future;
  const bool stays = options.borrow || (caller == Caller::kWaits && !options.interrupted);
  if (status.code() == Code::kCancelled && !stays) {
    cancel_batch(*batch);
  } else {
    batch->future->wait(kNever);  // Samples that were accepted may read the caller's memory.
  }
  return tl::unexpected<Status>(std::move(status));
}

bool SessionCore::cancel_batch(BatchCall& batch) {
  std::vector<std::weak_ptr<SessionTask>> tasks;
  {
    const std::lock_guard lock(batch.mutex);
    tasks = batch.tasks;
  }
  bool any = false;
  for (const auto& weak : tasks) {
    if (const auto task = weak.lock()) any = cancel(task) || any;
  }
  return any;
}

}  // namespace corelane::session
