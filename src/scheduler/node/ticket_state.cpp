#include "scheduler/node/ticket_state.h"

#include <utility>

namespace corelane::scheduler {

void TicketState::answer(RequestState how, Status why, Dict with) {
  {
    const MutexLock lock(mutex_);
    done_ = true;
    outcome_ = how;
    status_ = std::move(why);
    values = std::move(with);
  }
  // Without the lock, which the thread that wakes needs. The caller holds the ticket.
  answered_.notify_all();
}

bool TicketState::done() const {
  const MutexLock lock(mutex_);
  return done_;
}

RequestState TicketState::outcome() const {
  const MutexLock lock(mutex_);
  return outcome_;
}

Status TicketState::wait(TimePoint until) {
  MutexLock lock(mutex_);
  while (!done_)
    if (!clock->wait_until(lock.native(), answered_, until) && !done_)
      return error(Code::kTimeout, "request {} has not ended yet; it goes on", id)
          .with(Detail::kLimit, "wait");
  return status_;
}

Result<Dict> TicketState::take() {
  const MutexLock lock(mutex_);
  if (!done_)
    return error(Code::kWrongState, "request {} has not ended yet; wait for it first", id);
  if (std::exchange(taken_, true))
    return error(Code::kWrongState, "the values of request {} were taken before", id);
  return std::move(values);
}

}  // namespace corelane::scheduler
