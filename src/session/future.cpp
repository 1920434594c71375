#include "corelane/session/future.h"

#include <algorithm>
#include <utility>

#include "base/guard.h"
#include "base/reserve.h"
#include "dispatch/callback_thread.h"
#include "dispatch/interrupt_poll.h"
#include "session/tasks/batch_call.h"
#include "session/tasks/future_state.h"
#include "session/tasks/session_batch.h"
#include "session/tasks/session_core.h"

namespace corelane {
namespace session {

/// The failure of a call for which FutureState::lost() is true.
static Status lost_status() { return forked_status("the call was submitted"); }

void ContinuationState::deliver(Result<Outputs> value) noexcept {
  {
    const MutexLock lock(mutex_);
    if (over_) return;
    value_ = std::move(value);
  }
  const std::uint64_t number = thread_->post_or_call(sure_once<void()>([self = shared_from_this()] {
    Function f;
    Result<Outputs> outputs;
    if (self->end(f, outputs)) f(outputs);
  }));
  {
    const MutexLock lock(mutex_);
    number_ = number;
    if (!over_) return;
  }
  thread_->withdraw(number);  // Where withdraw() did not know the number yet.
}

void ContinuationState::call(const Result<Outputs>& value) {
  Function f;
  Result<Outputs> none;
  if (end(f, none)) f(value);
}

void ContinuationState::withdraw() noexcept {
  if (fork_count() != made_after_forks_) return;  // A thread of the parent may have held a lock.
  Function f;
  Result<Outputs> value;
  if (!end(f, value)) return;
  std::uint64_t number = 0;
  {
    const MutexLock lock(mutex_);
    number = number_;
  }
  // 0: deliver() has not stored the number yet. It finds `over_` then, and withdraws the job
  // itself.
  if (number != 0) thread_->withdraw(number);
}

/// For the one that ends it: moves out what is not to be destroyed under the lock.
bool ContinuationState::end(Function& f, Result<Outputs>& value) {
  const MutexLock lock(mutex_);
  if (std::exchange(over_, true)) return false;
  f.swap(call_);
  std::swap(value, value_);
  return true;
}

bool FutureState::resolve(Result<Outputs> value) noexcept {
  SureVector<std::shared_ptr<ContinuationState>> ready;
  {
    const MutexLock lock(mutex);
    if (done.load(std::memory_order_relaxed)) return false;
    result = std::move(value);
    done.store(true, std::memory_order_release);
    ready.swap(continuations);
    changed.notify_all();
  }
  // Without the lock, by the way of a continuation that comes late: so both are posted alike.
  for (auto& continuation : ready) then(std::move(continuation));
  return true;
}

bool FutureState::wait(TimePoint until) {
  if (resolved() || lost()) return true;
  MutexLock lock(mutex);
  while (!resolved())
    if (!clock->wait_until(lock.native(), changed, until)) break;
  return resolved();
}

bool FutureState::wait(const std::function<bool()>& interrupted) {
  if (resolved() || lost()) return true;
  MutexLock lock(mutex);
  dispatch::InterruptPoll poll(interrupted, "session");
  while (!resolved())
    if (!poll.wait(*clock, lock, changed, kNever).ok()) return false;
  return true;
}

void FutureState::then(std::shared_ptr<ContinuationState> continuation) noexcept {
  if (fork_count() != made_after_forks) {  // Their thread is not of this process.
    // No lock: a thread of the parent may have held it at the fork. Nothing here changes any more.
    run_callback("session", "a callback",
                 [&] { continuation->call(resolved() ? result : error(lost_status())); });
    return;
  }
  {
    const MutexLock lock(mutex);
    if (!resolved()) {
      continuations.push_back(std::move(continuation));
      return;
    }
  }
  // The result never changes now. The job holds a copy of it, not this state, which its handles
  // keep.
  continuation->deliver(no_throw("the result of a call", [this] { return result; }));
}

}  // namespace session

bool Future::done() const noexcept {
  return state_ != nullptr && (state_->resolved() || state_->lost());
}

bool Future::running() const noexcept {
  if (state_ == nullptr || done()) return false;
  const auto core = state_->core.lock();
  if (core == nullptr || core->forked()) return false;
  if (const auto batch = state_->batch.lock()) {
    const auto tasks = batch->tasks();
    return std::ranges::any_of(tasks, [&](const auto& task) { return core->started(task.lock()); });
  }
  // It may have ended since it was asked above.
  return core->started(state_->task.lock()) && !done();
}

std::uint64_t Future::task_id() const noexcept {
  return state_ == nullptr ? 0 : state_->task_id.load(std::memory_order_relaxed);
}

bool Future::wait(TimePoint until) const { return state_ != nullptr && state_->wait(until); }

Result<Outputs> Future::get() const {
  if (state_ == nullptr) return error(Code::kWrongState, "this future stands for no call");
  if (state_->lost()) return error(session::lost_status());
  state_->wait(kNever);
  return state_->result;
}

bool Future::cancel() {
  if (state_ == nullptr) return false;
  // A future does not keep its session alive.
  const auto core = state_->core.lock();
  if (core == nullptr || core->forked()) return false;
  if (const auto batch = state_->batch.lock()) return session::cancel_batch(*core, *batch);
  const auto task = state_->task.lock();
  return task != nullptr && core->cancel(task);
}

Continuation Future::then(std::function<void(const Result<Outputs>&)> f) const {
  Continuation continuation;
  if (state_ == nullptr || !f) return continuation;
  using session::ContinuationState;
  continuation.state_ = std::allocate_shared<ContinuationState>(
      ReserveAllocator<ContinuationState>(), std::move(f), state_->thread);
  state_->then(continuation.state_);
  return continuation;
}

void Continuation::withdraw() const noexcept {
  if (state_ != nullptr) state_->withdraw();
}

}  // namespace corelane
