// Who learns of a task that is done, and when.
#include <algorithm>
#include <cstdio>

#include "base/guard.h"
#include "corelane/base/log.h"
#include "session/tasks/batch_call.h"
#include "session/tasks/future_state.h"
#include "session/tasks/perf_line.h"
#include "session/tasks/session_core.h"
#include "session/tasks/session_worker.h"

namespace corelane::session {

Result<Outputs> SessionCore::outputs_of(Call& call, const Status& status) {
  if (!status.ok()) return error(status);
  Outputs outputs;
  outputs.reserve(call.outputs.size());
  if (call.order.empty()) {
    for (CallOutput& output : call.outputs) outputs.push_back(std::move(output.tensor));
  } else {
    for (const std::size_t i : call.order) outputs.push_back(call.outputs[i].tensor);
  }
  return outputs;
}

void SessionCore::resolve(const std::shared_ptr<SessionTask>& task, const Status& status) {
  std::vector<CallInput> inputs;
  {
    const Lock lock(mutex_);
    count(status);  // Before anybody learns of it.
    task->resolved = true;
    if (!task->maker_waits) inputs.swap(task->call.inputs);
  }
  if (task->batch != nullptr) {
    if (task->batch->finish(task->sample, task->call, status)) resolve_batch(*task->batch);
  } else if (task->callback) {
    call_back(task->ticket, task->id, std::move(task->callback), outputs_of(task->call, status));
    task->callback = nullptr;
  } else {
    task->future->resolve(outputs_of(task->call, status));
  }
  {
    const Lock lock(mutex_);
    settled();
  }
  drop(std::move(inputs));
}

void SessionCore::drop(std::vector<CallInput> inputs) {
  const bool lent = std::any_of(inputs.begin(), inputs.end(), [](const CallInput& input) {
    return input.keep != nullptr && !input.captured;
  });
  if (!lent) return;
  auto held = std::make_shared<std::vector<CallInput>>(std::move(inputs));
  std::function<void()> job = [held] { held->clear(); };
  callbacks_->post_or_call(std::move(job));
}

void SessionCore::keep_until_released(Inference inference, Call& call) {
  if (inference.wait_released(TimePoint{})) return;
  std::vector<Abandoned> kept;
  {
    const Lock lock(mutex_);
    kept.swap(abandoned_);
  }
  // Those of earlier resets that are over.
  const auto over = std::partition(kept.begin(), kept.end(), [](Abandoned& a) {
    return !a.inference.wait_released(TimePoint{});
  });
  for (auto a = over; a != kept.end(); ++a) drop(std::move(a->inputs));
  kept.erase(over, kept.end());
  kept.push_back({std::move(inference), std::move(call.inputs), call.outputs});
  call.inputs.clear();
  const Lock lock(mutex_);
  for (Abandoned& a : kept) abandoned_.push_back(std::move(a));
}

void SessionCore::count(const Status& status) {
  ++counted_.completed;
  if (!status.ok()) ++counted_.failed;
}

void SessionCore::settled() {
  --live_;
  if (quiet()) quiet_.notify_all();
}

void SessionCore::resolve_batch(BatchCall& batch) {
  Result<Outputs> result = batch.result();
  if (batch.callback) {
    call_back(batch.ticket, batch.first_id, std::move(batch.callback), std::move(result));
    batch.callback = nullptr;
  } else {
    batch.future->resolve(std::move(result));
  }
}

void SessionCore::call_back(std::uint64_t ticket, std::uint64_t id, RunCallback callback,
                            Result<Outputs> result) {
  auto job = [core = shared_from_this(), id, call = std::move(callback),
              value = std::move(result)]() mutable {
    run_callback("session", "a callback", [&] { call(id, std::move(value)); });
    core->called_back();
  };
  Status posted;
  std::vector<std::function<void()>> here;
  {
    const Lock lock(mutex_);
    ++pending_callbacks_;
    // Posted under the lock, so that two threads cannot swap what the order has put in order.
    for (auto& ready : order_.finish(ticket, std::move(job))) {
      if (posted = callbacks_->post(ready); !posted.ok()) here.push_back(std::move(ready));
    }
  }
  if (!here.empty()) log::error("session", "calling back in place: {}", posted.to_string());
  for (const auto& f : here) run_callback("session", "a callback", f);
}

void SessionCore::called_back() {
  const Lock lock(mutex_);
  --pending_callbacks_;
  ++counted_.callbacks;
  room_.notify_all();
  if (quiet()) quiet_.notify_all();
}

bool SessionCore::quiet() const noexcept { return live_ == 0 && pending_callbacks_ == 0; }

void SessionCore::print(const PerfFigures& figures) const {
  const std::string line = perf_line(figures);
  if (options_.perf_sink) {
    run_callback("session", "a callback", [&] { options_.perf_sink(line); });
    return;
  }
  std::fputs((line + "\n").c_str(), stderr);  // One call, so that lines of threads stay whole.
}

}  // namespace corelane::session
