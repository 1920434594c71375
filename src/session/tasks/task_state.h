/// The states of a task, and the one table of the ways between them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace corelane::session {

///     kEntering -> kWaiting -> kStarting -> kRunning -> kDone
///         |           |            |  \        ^          ^
///         v           |            |   v       |          |
///     kRefused        |            |  kStopping           |
///                     +------------+------+---------------+
enum class TaskState : std::uint8_t {
  kEntering,  ///< Its maker waits for room and pace; it has no number yet.
  kRefused,   ///< Cancelled while it was entering: it will not be accepted.
  kWaiting,   ///< Accepted, in the queue.
  kStarting,  ///< A context is bound and submitted for it.
  kStopping,  ///< Cancelled while it was starting: its inference is cancelled once there is one.
  kRunning,   ///< The device has its inference.
  kDone,      ///< Its result is known, and is delivered next.
};

/// Whether a task may go from one state to the other in one step.
constexpr bool may_follow(TaskState from, TaskState to) noexcept {
  switch (from) {
    case TaskState::kEntering:
      return to == TaskState::kWaiting || to == TaskState::kRefused;
    case TaskState::kWaiting:
      return to == TaskState::kStarting || to == TaskState::kDone;
    case TaskState::kStarting:
      return to == TaskState::kRunning || to == TaskState::kStopping || to == TaskState::kDone;
    case TaskState::kStopping:
      return to == TaskState::kRunning || to == TaskState::kDone;
    case TaskState::kRunning:
      return to == TaskState::kDone;
    case TaskState::kRefused:
    case TaskState::kDone:
      return false;
  }
  return false;
}

/// Where a task is. A step that the table does not allow ends a checking build's process.
class TaskProgress {
 public:
  TaskState state() const noexcept { return state_; }
  void move_to(TaskState next) noexcept {
#if !defined(NDEBUG) || defined(CORELANE_CHECK_LOCKS)
    if (!may_follow(state_, next)) {
      std::fprintf(stderr, "corelane: a session's task goes from state %d to %d\n",
                   static_cast<int>(state_), static_cast<int>(next));
      std::abort();
    }
#endif
    state_ = next;
  }

 private:
  TaskState state_ = TaskState::kEntering;
};

}  // namespace corelane::session
