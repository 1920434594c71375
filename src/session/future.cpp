#include "corelane/session/future.h"

#include "base/guard.h"
#include "dispatch/callback_thread.h"
#include "dispatch/interrupt_poll.h"
#include "session/tasks/batch_call.h"
#include "session/tasks/future_state.h"
#include "session/tasks/session_batch.h"
#include "session/tasks/session_core.h"

namespace corelane {
namespace session {

/// Of FutureState::lost().
static Status lost_status() { return forked_status("the call was submitted"); }

bool FutureState::resolve(Result<Outputs> value) noexcept {
  SureVector<std::function<void(const Result<Outputs>&)>> ready;
  {
    const MutexLock lock(mutex);
    if (done.load(std::memory_order_relaxed)) return false;
    result = std::move(value);
    done.store(true, std::memory_order_release);
    ready.swap(continuations);
    changed.notify_all();
  }
  // Without the lock, by the way of a continuation that comes late: so both are posted alike.
  for (auto& f : ready) then(std::move(f));
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

void FutureState::then(std::function<void(const Result<Outputs>&)> f) noexcept {
  if (fork_count() != made_after_forks) {  // Their thread is not of this process.
    // No lock: a thread of the parent may have held it at the fork. Nothing here changes any more.
    run_callback("session", "a callback",
                 [&] { f(resolved() ? result : Result<Outputs>(error(lost_status()))); });
    return;
  }
  {
    const MutexLock lock(mutex);
    if (!resolved()) {
      continuations.push_back(std::move(f));
      return;
    }
  }
  // The result never changes now. The job holds a copy of it, not this state, which its handles
  // keep.
  Result<Outputs> value = no_throw("the result of a call", [this] { return result; });
  thread->post_or_call(
      sure_once<void()>([value = std::move(value), call = std::move(f)] { call(value); }));
}

}  // namespace session

bool Future::done() const noexcept {
  return state_ != nullptr && (state_->resolved() || state_->lost());
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

void Future::then(std::function<void(const Result<Outputs>&)> f) const {
  if (state_ == nullptr || !f) return;
  state_->then(std::move(f));
}

}  // namespace corelane
