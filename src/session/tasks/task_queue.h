/// What a session decides: which call may enter, which task runs next and on which context.
///
/// The pure part of a session. It takes no lock, starts nothing, reads no clock and calls nobody:
/// time comes in as an argument, and the answers say what to do. SessionCore guards it with the
/// session's mutex and acts on the answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/reserve.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/session/session_options.h"
#include "corelane/session/session_statistics.h"
#include "dispatch/admission.h"
#include "dispatch/lone_tasks.h"
#include "dispatch/pacer.h"
#include "dispatch/placement.h"

namespace corelane::session {

struct SessionTask;

/// A call on its way into the queue.
struct Entrance {
  bool in_callback = false;     ///< Callbacks that are pending wait for this very thread.
  TimePoint deadline = kNever;  ///< Of its wait for room and pace.
  bool paced = false;           ///< The pace held it up.
};

/// A context that was given to a task, or to a call that runs in its caller's thread.
struct Assignment {
  std::shared_ptr<SessionTask> task;  ///< Null for a call that runs in its caller's thread.
  std::uint64_t id = 0;
  std::size_t context = 0;
  bool all_cores = false;  ///< It takes all cores of the schedule at once.
};

/// What became of a request to cancel a task.
enum class Cancellation : std::uint8_t {
  kTooLate,    ///< It is done.
  kRefused,    ///< It will not be accepted; its maker says so.
  kWithdrawn,  ///< It left the queue and is done: deliver kCancelled.
  kStopping,   ///< It ends with kCancelled; the thread that starts it cancels its inference.
  kRunning,    ///< Its inference can be cancelled.
};

class TaskQueue {
 public:
  /// `context_cores`: the core of each context, -1 for the device's choice. `joins_cores`: a task
  /// that is alone may take all cores of the schedule.
  TaskQueue(const SessionOptions& options, std::vector<std::int32_t> context_cores,
            std::size_t device_cores, bool joins_cores);

  // Entering.
  /// Whether there is room for one more task, and for its callback.
  bool has_room(bool in_callback) const noexcept;
  /// Whether a call may enter now. Counts those that are refused or held up by the pace.
  dispatch::AdmissionAnswer admit(Entrance& entrance, TimePoint now);
  /// The failure of a call that `why` kept out; `waited`: since it asked for room.
  Status refused(dispatch::Admission why, Duration waited) const;
  /// Gives the task a number, a deadline and a place in the queue.
  void accept(const std::shared_ptr<SessionTask>& task, TimePoint now);

  // Starting.
  /// The first waiting task that has an idle context, which it takes.
  std::optional<Assignment> start_next();
  /// A number and a context for a call that runs in its caller's thread; nullopt when it would
  /// have to wait.
  std::optional<Assignment> start_in_place(TimePoint now);
  /// The device took the task; false when it was cancelled meanwhile.
  bool submitted(SessionTask& task);
  /// The device's line is full for a task of this lane: until room_found() no other one of it
  /// starts, since it would pass that task.
  void await_room(std::size_t lane) noexcept { ++lanes_[lane].awaiting_room; }
  void room_found(std::size_t lane) noexcept { --lanes_[lane].awaiting_room; }

  // Ending.
  Cancellation cancel(SessionTask& task);
  /// Takes a waiting task out of the queue; false when it is not waiting.
  bool withdraw(SessionTask& task);
  /// Takes all waiting tasks out of the queue.
  SureVector<std::shared_ptr<SessionTask>> withdraw_all();
  /// A started task is done. `started`: it took a core's time.
  void complete(SessionTask& task, const Status& status, bool started);
  /// A call that ran in its caller's thread is done and delivered.
  void complete_in_place(const Status& status);
  /// The context is idle again; a success is a sample of the pace. `waited`: for cores, before.
  void release(std::size_t context, const Status& status, Duration device_time,
               Duration waited = {});
  /// `tasks` have been handed over, to a callback that is pending from now on or otherwise.
  void delivered(std::size_t tasks) noexcept { undelivered_ -= tasks; }
  void callback_pending() noexcept { ++pending_callbacks_; }
  /// True where max_pending_callbacks were pending: there is room for a task now.
  bool callback_returned() noexcept;

  void close() noexcept { closed_ = true; }
  bool closed() const noexcept { return closed_; }
  /// No task is accepted and undelivered, and no callback is pending.
  bool quiet() const noexcept { return undelivered_ == 0 && pending_callbacks_ == 0; }
  std::size_t undelivered() const noexcept { return undelivered_; }
  std::int64_t pending_callbacks() const noexcept { return pending_callbacks_; }
  Duration average_device_time() const noexcept { return pacer_.average(); }
  /// All figures but those of the contexts.
  SessionStatistics statistics() const;

 private:
  /// Tasks that wait for the same contexts.
  struct Lane {
    SureDeque<std::shared_ptr<SessionTask>> waiting;
    std::vector<std::size_t> idle;  ///< Contexts; the last one is taken first.
    std::size_t awaiting_room = 0;  ///< Tasks that the device's full line refused.
  };

  std::size_t lane_of_task(std::uint64_t id, std::int32_t& wanted_core) const;
  std::size_t lane_of_context(std::size_t context) const;
  std::size_t& running_on(std::int32_t core) {
    return running_by_core_[static_cast<std::size_t>(core) + 1];  // -1 becomes 0.
  }
  /// `others`: tasks that wait beside the one it is for.
  std::optional<Assignment> take_context(Lane& lane, std::int32_t wanted_core, std::int64_t others);
  void number(std::uint64_t& id, TimePoint now);
  void count(const Status& status) noexcept;

  const std::vector<std::size_t> schedule_;
  const PlacementPolicy placement_;
  const bool paced_;
  const std::int64_t max_waiting_;
  const std::int64_t max_pending_callbacks_;
  const std::vector<std::int32_t> context_cores_;
  const bool joins_cores_;

  std::vector<Lane> lanes_;                   ///< One, or by kFormula one for each core.
  std::vector<std::size_t> lane_of_core_;     ///< By core number, with a schedule.
  std::vector<std::size_t> running_by_core_;  ///< By core number + 1; [0]: the device's choice.
  std::int64_t waiting_ = 0;                  ///< In all lanes.
  std::size_t running_ = 0;                   ///< Contexts that are taken.
  std::size_t undelivered_ = 0;               ///< Accepted tasks whose result is not handed over.
  std::int64_t pending_callbacks_ = 0;
  bool closed_ = false;
  std::uint64_t next_id_ = 0;
  dispatch::Pacer pacer_;
  dispatch::LoneTasks lone_;
  SessionStatistics counted_;
};

}  // namespace corelane::session
