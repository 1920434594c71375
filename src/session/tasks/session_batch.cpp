#include "session/tasks/session_batch.h"

#include <algorithm>

#include "base/guard.h"
#include "dispatch/interrupt_poll.h"
#include "session/tasks/batch_call.h"
#include "session/tasks/future_state.h"
#include "session/tasks/session_core.h"
#include "session/tasks/session_task.h"

namespace corelane::session {
namespace {

/// Chooses the outputs, and allocates them whole where their size is known before the first run.
Status prepare(const SessionModel& model, const CallOptions& options, BatchCall& batch,
               Call& prototype) {
  CORELANE_TRY(model.choose_outputs(options.outputs, prototype));
  batch.order = prototype.order;
  const auto& descs = model.native_outputs();
  const bool known =
      !model.has_open_shapes() &&
      std::all_of(prototype.outputs.begin(), prototype.outputs.end(), [&](const CallOutput& o) {
        return descs[o.index].shape.is_static() && descs[o.index].shape.rank() > 0;
      });
  if (!known) return {};  // Put together when all are done.
  for (const CallOutput& output : prototype.outputs) {
    const TensorDesc& desc = descs[output.index];
    const DType dtype = model.result_dtype(output.index, desc.dtype);
    if (batch.samples > 1) CORELANE_TRY(check_rows("output", desc.name, desc.shape, dtype));
    Shape shape = desc.shape;
    shape[0] *= static_cast<std::int64_t>(batch.samples);
    CallOutput& whole = batch.outputs.emplace_back();
    whole.index = output.index;
    CORELANE_ASSIGN(whole.tensor, Tensor::allocate(desc.name, dtype, std::move(shape)));
    whole.tensor.quant = model.result_quant(output.index);
  }
  return {};
}

Call sample_call(const BatchCall& batch, const Call& prototype,
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
    // Each sample writes its rows of the whole: nothing is put together afterwards.
    part.tensor.data = std::shared_ptr<void>(whole.tensor.data, first + sample * part.tensor.size);
  }
  return call;
}

bool reads_callers_memory(const Call& call) {
  return std::any_of(call.inputs.begin(), call.inputs.end(), [](const CallInput& input) {
    return !input.captured && input.keep == nullptr && input.buffer == nullptr;
  });
}

/// Submits the samples until one is refused. All have the time limits of the call.
Status submit_samples(SessionCore& core, const std::shared_ptr<BatchCall>& batch,
                      const Call& prototype, const std::vector<CallInput>& inputs,
                      const CallOptions& options) {
  SessionCore::Submission submission(options);
  TimePoint deadline = kNever;
  for (std::size_t k = 0; k < batch->samples; ++k) {
    const auto task = SessionCore::make_task(sample_call(*batch, prototype, inputs, k), options);
    task->batch = batch;
    task->sample = k;
    task->deadline = deadline;
    // The ticket of the last sample is the batch's place among the callbacks.
    task->draws_ticket = batch->callback != nullptr && k + 1 == batch->samples;
    batch->add(task);
    Status status =
        no_throw("submitting a sample", [&] { return core.submit_task(task, submission); });
    if (!status.ok()) {
      batch->remove_last();
      return status;
    }
    // The first sample's deadline, counted from its acceptance, is that of all.
    deadline = task->deadline;
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<FutureState>> submit_batch(SessionCore& core, std::vector<CallInput> inputs,
                                                  const CallOptions& options, Caller caller,
                                                  RunCallback callback) {
  CORELANE_TRY(core.check(options));
  auto batch = std::make_shared<BatchCall>();
  CORELANE_ASSIGN(batch->samples, count_samples(core.model(), inputs));
  Call prototype;
  CORELANE_TRY(prepare(core.model(), options, *batch, prototype));
  Call whole;
  whole.inputs = std::move(inputs);
  // Copied once as a whole; the samples are slices of the copy.
  CORELANE_TRY(core.own_inputs(whole, options, caller));
  batch->future = core.make_future();
  batch->future->batch = batch;
  batch->callback = std::move(callback);
  const Status status = no_throw("submitting a batch", [&] {
    return submit_samples(core, batch, prototype, whole.inputs, options);
  });
  // The thread that completes the last sample delivers the batch with it.
  if (status.ok()) return batch->future;
  // A failed submission calls nothing back: its status is the answer.
  // Before end(), after which the last sample may deliver the batch in another thread.
  batch->callback = nullptr;
  if (batch->end(status)) core.deliver_batch(*batch, 0);
  cancel_batch(core, *batch);
  // Samples that run may read the caller's memory: this wait is not interrupted.
  if (reads_callers_memory(whole)) batch->future->wait(kNever);
  return error(status);
}

bool cancel_batch(SessionCore& core, BatchCall& batch) {
  bool any = false;
  for (const auto& weak : batch.tasks())
    if (const auto task = weak.lock()) any = core.cancel(task) || any;
  return any;
}

}  // namespace corelane::session
