// The end of a session, and its figures.
#include "dispatch/callback_thread.h"
#include "session/tasks/future_state.h"
#include "session/tasks/session_core.h"
#include "session/tasks/session_task.h"
#include "session/tasks/session_worker.h"

namespace corelane::session {

Status SessionCore::close(TimePoint deadline, const std::function<bool()>& interrupted) {
  const bool in_callback = dispatch::CallbackThread::any_is_current();
  CORELANE_ASSIGN(const bool quiet, wait_quiet(deadline, interrupted, in_callback));
  if (!quiet && !in_callback) CORELANE_TRY(cancel_waiting());
  if (in_callback) {
    threads_.stop();
    return {};
  }
  if (!threads_.wait_idle(deadline))
    return error(Code::kTimeout, "a continuation has not returned; close again to wait for it");
  threads_.stop_and_join();
  return {};
}

/// Refuses new tasks, and waits until the others are delivered; then releases contexts and
/// programs. False when they are not by the deadline. A callback thread does not wait: that would
/// deadlock, and the rest completes asynchronously.
Result<bool> SessionCore::wait_quiet(TimePoint deadline, const std::function<bool()>& interrupted,
                                     bool in_callback) {
  std::vector<std::unique_ptr<SessionWorker>> workers;  // Released without the lock.
  std::vector<Program> programs;
  MutexLock lock(mutex_);
  // Callers that wait for room are refused too.
  queue_.close();
  room_.notify_all();
  dispatch::InterruptPoll poll(interrupted, kLogPart);
  while (!queue_.quiet() && !in_callback && clock_->now() < deadline)
    CORELANE_TRY(poll.wait(*clock_, lock, quiet_, deadline));
  if (!queue_.quiet()) return false;
  workers.swap(workers_);
  programs.swap(programs_);
  return true;
}

/// For a close() whose deadline has come: cancels the waiting tasks. kTimeout while any are left.
Status SessionCore::cancel_waiting() {
  SureVector<std::shared_ptr<SessionTask>> cancelled;
  {
    const MutexLock lock(mutex_);
    cancelled = queue_.withdraw_all();
  }
  for (const auto& task : cancelled) {
    deliver_withdrawn(task,
                      error(Code::kCancelled, "the session was closed before the task started"));
  }
  if (!cancelled.empty()) {
    return error(Code::kTimeout, "{} waiting tasks were cancelled; others still run",
                 cancelled.size());
  }
  const MutexLock lock(mutex_);
  if (queue_.quiet()) return {};
  return error(Code::kTimeout,
               "{} tasks still run and {} callbacks have not returned; close again to wait for "
               "them",
               queue_.undelivered(), queue_.pending_callbacks());
}

bool SessionCore::closed() const {
  if (forked()) return true;
  const MutexLock lock(mutex_);
  return queue_.closed();
}

bool SessionCore::wait_callbacks(TimePoint until) { return !forked() && threads_.wait_idle(until); }

SessionStatistics SessionCore::statistics() const {
  SessionStatistics s;
  if (forked()) {  // The mutex may be held by a thread that does not exist here.
    s.tasks_by_context.resize(context_cores_.size());
  } else {
    const MutexLock lock(mutex_);
    s = queue_.statistics();
  }
  s.contexts = context_cores_.size();
  s.duplicated = duplicated_;
  s.core_of_context = context_cores_;
  return s;
}

std::shared_ptr<const Program> SessionCore::first_program() const {
  if (forked()) return nullptr;
  const MutexLock lock(mutex_);
  return programs_.empty() ? nullptr : std::make_shared<const Program>(programs_.front());
}

/// Programs of one session are loads of one model: each is timed on its own, and the first speaks.
device::EngineChoice SessionCore::engine() const {
  if (forked()) return {};
  std::vector<Program> programs;
  {
    const MutexLock lock(mutex_);
    programs = programs_;
  }
  return programs.empty() ? device::EngineChoice() : programs.front().engine();
}

device::MemoryFigures SessionCore::memory() const {
  if (forked()) return {};
  std::vector<Program> programs;
  device::MemoryFigures sum;
  {
    const MutexLock lock(mutex_);
    programs = programs_;
    for (const auto& worker : workers_) sum.buffers += worker->idle_bytes();
  }
  for (const Program& program : programs) sum += program.memory();
  return sum;
}

}  // namespace corelane::session
