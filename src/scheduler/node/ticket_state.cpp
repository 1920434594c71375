#include "scheduler/node/ticket_state.h"

#include <utility>

namespace corelane::scheduler {

void TicketState::answer(RequestState how, Status why, Dict with) {
  outcome_ = how;
  status_ = std::move(why);
  values = std::move(with);
  {
    const MutexLock lock(mutex_);
    // Under the lock: between a waiter's look and its sleep it would not be noticed.
    answered_.store(true, std::memory_order_release);
  }
  // Without the lock, which the thread that wakes needs. The caller holds the ticket.
  woken_.notify_all();
}

RequestState TicketState::outcome() const noexcept {
  if (answered()) return outcome_;
  return lost() ? RequestState::kCancelled : RequestState::kWaiting;
}

Failure TicketState::lost_failure() const {
  return error(Code::kWrongState,
               "request {} was submitted before this process was forked, and only the parent has "
               "its answer; submit it to a pipeline that is made in the child",
               id);
}

Status TicketState::wait(TimePoint until) {
  if (answered()) return status_;
  if (lost()) return lost_failure();
  MutexLock lock(mutex_);
  while (!answered())
    if (!clock->wait_until(lock.native(), woken_, until) && !answered())
      return error(Code::kTimeout, "request {} has not ended yet; it goes on", id)
          .with(Detail::kLimit, "wait");
  return status_;
}

Result<Dict> TicketState::take() {
  if (lost()) return lost_failure();
  if (!answered())
    return error(Code::kWrongState, "request {} has not ended yet; wait for it first", id);
  if (taken_.exchange(true))
    return error(Code::kWrongState, "the values of request {} were taken before", id);
  return std::move(values);
}

Status check_request(const Dict& values, const RequestOptions& options) {
  if (!values.contains(kData))
    return error(Code::kOutOfRange, "a request has no \"data\"; set it to what the backend takes");
  if (options.items == 0)
    return error(Code::kInvalidArgument, "a request has 0 items; it has 1 or more");
  if (options.timeout < Duration{})
    return error(Code::kInvalidArgument,
                 "a request has a timeout of {} ms; it is above 0, or 0 for none",
                 ms(options.timeout));
  if (options.priority < -128 || options.priority > 127)
    return error(Code::kInvalidArgument, "a request has priority {}; allowed is -128 to 127",
                 options.priority);
  return {};
}

}  // namespace corelane::scheduler
