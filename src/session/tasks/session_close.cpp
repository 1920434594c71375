// The end of a session, and its figures.
#include "dispatch/interrupt_poll.h"
#include "session/tasks/batch_call.h"
#include "session/tasks/future_state.h"
#include "session/tasks/session_core.h"
#include "session/tasks/session_worker.h"

namespace corelane::session {

Status SessionCore::close(TimePoint deadline, const std::function<bool()>& interrupted) {
  std::vector<std::unique_ptr<SessionWorker>> workers;
  std::vector<Program> programs;
  std::vector<std::shared_ptr<SessionTask>> cancelled;
  const bool in_callback = dispatch::CallbackThread::any_is_current();
  {
    Lock lock(mutex_);
    closing_ = true;
    room_.notify_all();
    if (in_callback && !quiet()) {
      // Whoever waits here waits for itself, or for one that waits for it. The rest ends on its
      // own.
      lock.unlock();
      callbacks_->stop();
      return {};
    }
    dispatch::InterruptPoll poll(interrupted, "session");
    while (!quiet() && clock_->now() < deadline) {
      CORELANE_TRY(poll.wait(*clock_, lock, quiet_, deadline));
    }
    if (quiet()) {
      workers.swap(workers_);
      programs.swap(programs_);
      for (Lane& lane : lanes_) lane.idle.clear();
    } else {
      for (Lane& lane : lanes_) {
        while (!lane.waiting.empty()) {
          cancelled.push_back(lane.waiting.front());
          withdraw(*cancelled.back());
        }
      }
    }
  }
  for (const auto& task : cancelled) {
    resolve(task, error(Code::kCancelled, "the session was closed before the task started"));
  }
  if (workers.empty() && !cancelled.empty()) {
    return error(Code::kTimeout, "{} waiting tasks were cancelled; others still run",
                 cancelled.size());
  }
  {
    const Lock lock(mutex_);
    if (!quiet()) {
      return error(Code::kTimeout,
                   "{} tasks still run and {} callbacks have not returned; close again to wait "
                   "for them",
                   live_, pending_callbacks_);
    }
  }
  workers.clear();
  programs.clear();
  if (in_callback) {  // A continuation, or a callback of another session.
    callbacks_->stop();
    return {};
  }
  if (!callbacks_->wait_idle(deadline)) {
    return error(Code::kTimeout, "a continuation has not returned; close again to wait for it");
  }
  callbacks_->stop_and_join();
  return {};
}

bool SessionCore::closed() const {
  if (forked()) return true;
  const Lock lock(mutex_);
  return closing_;
}

bool SessionCore::wait_callbacks(TimePoint until) {
  return !forked() && callbacks_->wait_idle(until);
}

SessionStatistics SessionCore::statistics() const {
  SessionStatistics s;
  if (forked()) {  // The lock may be held for ever.
    s.tasks_by_context.resize(contexts_);
  } else {
    const Lock lock(mutex_);
    s = counted_;
    s.waiting = static_cast<std::size_t>(waiting_);
    s.running = running_;
    s.pending_callbacks = static_cast<std::size_t>(pending_callbacks_);
    s.average_device_time = pacer_.average();
  }
  s.contexts = contexts_;
  s.duplicated = duplicated_;
  s.core_of_context = context_cores_;
  return s;
}

std::shared_ptr<const Program> SessionCore::first_program() const {
  if (forked()) return nullptr;
  const Lock lock(mutex_);
  return programs_.empty() ? nullptr : std::make_shared<const Program>(programs_.front());
}

device::MemoryFigures SessionCore::memory() const {
  if (forked()) return {};
  std::vector<Program> programs;
  {
    const Lock lock(mutex_);
    programs = programs_;
  }
  device::MemoryFigures sum;
  for (const Program& program : programs) sum += program.memory();
  return sum;
}

}  // namespace corelane::session
