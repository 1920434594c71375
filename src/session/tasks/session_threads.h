/// The threads of a session: two in which its users are called, and one that waits.
#pragma once

#include <memory>
#include <utility>

#include "corelane/base/clock.h"
#include "dispatch/callback_thread.h"

namespace corelane::session {

/// Each starts with the first job that is posted to it. Any thread.
class SessionThreads {
 public:
  SessionThreads(std::shared_ptr<Clock> clock, const char* log_part)
      : callbacks(std::make_shared<dispatch::CallbackThread>(clock, "corelane-callbk", log_part)),
        continuations(
            std::make_shared<dispatch::CallbackThread>(clock, "corelane-future", log_part)),
        room(std::make_shared<dispatch::CallbackThread>(clock, "corelane-room", log_part)),
        clock_(std::move(clock)) {}

  /// Waits until no callback and no continuation is posted or running; false when `until` came
  /// first, and where a thread of a session would wait.
  bool wait_idle(TimePoint until) const {
    // What one does may bring the other one work: the first is asked again.
    do {
      if (!callbacks->wait_idle(until) || !continuations->wait_idle(until)) return false;
    } while (!callbacks->wait_idle(clock_->now()));
    return true;
  }
  /// As CallbackThread::stop.
  void stop() const {
    callbacks->stop();
    continuations->stop();
    room->stop();
  }
  /// As CallbackThread::stop_and_join.
  void stop_and_join() const {
    callbacks->stop_and_join();
    continuations->stop_and_join();
    room->stop_and_join();
  }

  const std::shared_ptr<dispatch::CallbackThread> callbacks;
  /// Runs continuations of futures and coroutines, so that a callback may wait for what they do.
  const std::shared_ptr<dispatch::CallbackThread> continuations;
  /// Submits tasks that the device's full line refused: a thread that starts tasks may not wait.
  const std::shared_ptr<dispatch::CallbackThread> room;

 private:
  const std::shared_ptr<Clock> clock_;
};

}  // namespace corelane::session
