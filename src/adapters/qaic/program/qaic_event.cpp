#include "adapters/qaic/program/qaic_event.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "adapters/qaic/context/qaic_context.h"
#include "base/guard.h"
#include "base/reserve.h"

namespace corelane::qaic {

EventObject::EventObject(std::shared_ptr<ContextObject> context, std::shared_ptr<Clock> clock)
    : Object(kKind), context_(std::move(context)), clock_(std::move(clock)) {}

EventObject::~EventObject() = default;

void EventObject::begin() {
  const MutexLock lock(mutex_);
  ++in_flight_;
}

void EventObject::refuse() {
  const MutexLock lock(mutex_);
  --in_flight_;
  // Who waits looks again: maybe nothing is left that would signal the event.
  changed_.notify_all();
}

void EventObject::complete(const Status& status) {
  SureVector<std::shared_ptr<Callback>> due;
  {
    const MutexLock lock(mutex_);
    --in_flight_;
    completed_ = true;
    outcome_ = status;
    for (const auto& callback : callbacks_)
      // Under the lock: a removal that comes after it waits for the call.
      if (callback->gate.reserve()) due.push_back(callback);
    changed_.notify_all();
  }
  if (due.empty()) return;
  context_->post(*clock_,
                 sure_once<void()>([context = context_, handle = handle_, calls = std::move(due)] {
                   for (const auto& one : calls)
                     one->gate.call_due("a callback of an event", [&] {
                       const Status thrown = no_throw(
                           "a callback of an event",
                           [&]() -> Status {
                             one->function(handle, QAIC_EVENT_DEVICE_COMPLETE, one->data);
                             return {};
                           },
                           Code::kEngineFailed);
                       if (!thrown.ok()) context->report(QIAC_ERROR_EVENT_RUNTIME, thrown);
                     });
                 }));
}

Status EventObject::clear() {
  const MutexLock lock(mutex_);
  if (in_flight_ != 0)
    return error(Code::kBusy,
                 "{} inferences that signal the event are in flight; wait for them before it is "
                 "cleared",
                 in_flight_);
  completed_ = false;
  outcome_ = {};
  return {};
}

void EventObject::add_callback(QAicEventCallback callback, void* data) {
  auto added = std::make_shared<Callback>(callback, data);
  const MutexLock lock(mutex_);
  if (!closed_) callbacks_.push_back(std::move(added));
}

Status EventObject::remove_callback(QAicEventCallback callback) {
  Callbacks removed;
  {
    const MutexLock lock(mutex_);
    const auto first = std::ranges::stable_partition(
        callbacks_, [&](const auto& one) { return one->function != callback; });
    removed.assign(std::make_move_iterator(first.begin()), std::make_move_iterator(first.end()));
    callbacks_.erase(first.begin(), first.end());
  }
  if (removed.empty())
    return error(Code::kNotFound, "the callback was not added to the event, or is removed already");
  for (const auto& one : removed) one->gate.close();
  return {};
}

Status EventObject::wait() {
  MutexLock lock(mutex_);
  if (in_flight_ == 0 && !completed_)
    return error(
        Code::kWrongState,
        "nothing that would signal the event is in flight; enqueue an execution object with "
        "it first");
  while (in_flight_ != 0 && !closed_) clock_->wait_until(lock.native(), changed_, kNever);
  if (in_flight_ != 0)
    return error(Code::kCancelled, "the event was released while its inferences were in flight");
  if (completed_) return outcome_;
  return error(Code::kWrongState, "the inference that would have signalled the event was refused");
}

void EventObject::close() {
  Callbacks removed;
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    removed.swap(callbacks_);
    changed_.notify_all();
  }
  for (const auto& one : removed) one->gate.close();
}

}  // namespace corelane::qaic
