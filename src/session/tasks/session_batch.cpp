// A batch call: one task for each sample.
#include <algorithm>

#include "dispatch/interrupt_poll.h"
#include "session/tasks/batch_call.h"
#include "session/tasks/future_state.h"
#include "session/tasks/session_core.h"

namespace corelane::session {

Status SessionCore::prepare_batch(const CallOptions& options, BatchCall& batch,
                                  Call& prototype) const {
  CORELANE_TRY(model_.choose_outputs(options.outputs, prototype));
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
    CORELANE_ASSIGN(whole.tensor,
                    Tensor::allocate(desc.name, model_.result_dtype(output.index, desc.dtype),
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

namespace {

bool reads_callers_memory(const Call& call) {
  return std::any_of(call.inputs.begin(), call.inputs.end(), [](const CallInput& input) {
    return !input.captured && input.keep == nullptr && input.buffer == nullptr;
  });
}

}  // namespace

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
  // One for all samples: time limits are the call's.
  Entrance entrance(options);
  TimePoint deadline = kNever;
  for (std::size_t k = 0; k < batch->samples && status.ok(); ++k) {
    const auto task = make_task(sample_call(*batch, prototype, whole.inputs, k), options);
    task->batch = batch;
    task->sample = k;
    task->deadline = deadline;
    task->draws_ticket = batch->callback != nullptr && k + 1 == batch->samples;
    {
      const std::lock_guard lock(batch->mutex);
      ++batch->accepted;
      batch->tasks.push_back(task);
    }
    status = attach(task, options);
    if (status.ok()) status = accept(task, options, entrance);
    deadline = task->deadline;
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
  cancel_batch(*batch);
  // Samples that run may read the caller's memory.
  if (reads_callers_memory(whole)) batch->future->wait(options.interrupted);
  return error(std::move(status));
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
