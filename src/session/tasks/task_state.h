/// The states of a task, and the one table of the ways between them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace corelane::session {

///     kEntering -> kWaiting -> kStarting -> kRunning -> kDone
///         |           |            |  \                    ^
///         v           |            |   v                   |
///     kRefused        |            |  kStopping            |
///                     +------------+------+----------------+
enum class TaskState : std::uint8_t {
  kEntering,  ///< Its maker waits for room and pace; it has no number yet.
  kRefused,   ///< Cancelled while it was entering: it will not be accepted.
  kWaiting,   ///< Accepted, in the queue.
  kStarting,  ///< A context is bound and submitted for it.
  kStopping,  ///< Cancelled while it was starting: it ends so, whatever the device makes of it.
  kRunning,   ///< The device has its inference.
  kDone,      ///< Its result is known, and is delivered next.
};

/// Whether a task may go from one state to the other in one step.
constexpr bool may_follow(TaskState from, TaskState to) noexcept {
  using enum TaskState;
  switch (from) {
    case kEntering:
      return to == kWaiting || to == kRefused;
    case kWaiting:
      return to == kStarting || to == kDone;
    case kStarting:
      return to == kRunning || to == kStopping || to == kDone;
    case kStopping:
    case kRunning:
      return to == kDone;
    default:  // kRefused and kDone are ends.
      return false;
  }
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
