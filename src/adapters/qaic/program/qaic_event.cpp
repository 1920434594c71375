#include "adapters/qaic/program/qaic_event.h"

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
  changed_.notify_all();
}

void EventObject::complete(const Status& status) {
  SureVector<Callback> callbacks;
  {
    const MutexLock lock(mutex_);
    --in_flight_;
    completed_ = true;
    outcome_ = status;
    callbacks.assign(callbacks_.begin(), callbacks_.end());
    changed_.notify_all();
  }
  for (const Callback& callback : callbacks) {
    const Status thrown = no_throw(
        "a callback of an event",
        [&]() -> Status {
          callback.function(handle_, QAIC_EVENT_DEVICE_COMPLETE, callback.data);
          return {};
        },
        Code::kEngineFailed);
    if (!thrown.ok()) context_->report(QIAC_ERROR_EVENT_RUNTIME, thrown);
  }
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
  const MutexLock lock(mutex_);
  callbacks_.push_back({callback, data});
}

Status EventObject::remove_callback(QAicEventCallback callback) {
  const MutexLock lock(mutex_);
  const auto removed =
      std::erase_if(callbacks_, [&](const Callback& one) { return one.function == callback; });
  if (removed != 0) return {};
  return error(Code::kNotFound, "the callback was not added to the event, or is removed already");
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
  const MutexLock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace corelane::qaic
