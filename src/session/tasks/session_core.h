/// The working part of a session: locks, waits, and calls the runtime and the users.
///
/// What to do is decided by TaskQueue, under the session's mutex; what it says is done here, after
/// the mutex was released: no device, runtime or user is called, and no tensor copied, under it.
/// The states of a task are in task_state.h. The way of a task that waits for nobody:
///  - submit_task() makes the caller wait for room and pace, and the task is accepted;
///  - start_tasks() binds and submits tasks that were given a context, in whichever thread made
///    the context idle or brought the task;
///  - complete() runs in the thread of the device that finished the job: it releases the context,
///    starts what waits, and only then has the result delivered;
///  - deliver() hands it to a future, a callback or a batch.
/// run() takes a shorter way when a context is idle: the caller runs in its own thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/reserve.h"
#include "base/sync.h"
#include "corelane/device/device.h"
#include "corelane/session/session.h"
#include "dispatch/callback_order.h"
#include "dispatch/interrupt_poll.h"
#include "session/tasks/abandoned_calls.h"
#include "session/tasks/perf_line.h"
#include "session/tasks/session_model.h"
#include "session/tasks/session_threads.h"
#include "session/tasks/short_runs.h"
#include "session/tasks/task_queue.h"

namespace corelane::session {

struct SessionParts;
class BatchCall;
class SessionWorker;
struct FutureState;
struct SessionTask;

/// The log part, and the prefix of what a session's own thread says.
inline constexpr const char* kLogPart = "session";

class SessionCore final : public std::enable_shared_from_this<SessionCore> {
 public:
  explicit SessionCore(SessionParts parts);
  ~SessionCore();

  const SessionModel& model() const noexcept { return model_; }
  const SessionOptions& options() const noexcept { return options_; }
  const std::shared_ptr<device::Device>& device() const noexcept { return device_; }
  const std::shared_ptr<Clock>& clock() const noexcept { return clock_; }
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }
  /// For sessions that take their weights from this one; null once it is closed.
  std::shared_ptr<const Program> first_program() const;
  /// kWrongState in a forked child.
  Status usable() const;
  bool forked() const noexcept;

  // session_call.cpp
  Result<Outputs> run(Call&& call, const CallOptions& options);
  /// A binding's call, which stays as it was bound; its outputs have fixed shapes. `results`:
  /// empty, or those of an earlier run where all outputs are given memory.
  Status run_bound(Call& call, const CallOptions& options, Outputs& results);
  /// Unless it `waits`: nullopt or null, and nothing copied, when the call would have to wait.
  Result<std::optional<std::uint64_t>> run_async(Call call, RunCallback callback,
                                                 const CallOptions& options, bool waits);
  Result<std::shared_ptr<FutureState>> submit(Call call, const CallOptions& options, bool waits);

  // For a batch, which submits a task for each sample: session_call.cpp, session_core.cpp.
  /// One submission, or all those of a batch.
  struct Submission {
    explicit Submission(const CallOptions& o, bool w = true)
        : options(o), waits(w), poll(o.interrupted, kLogPart) {}
    const CallOptions& options;
    const bool waits;  ///< For room and pace; otherwise it is refused at once.
    dispatch::InterruptPoll poll;
  };
  /// kInvalidArgument for options out of range, kCancelled by a CallControl.
  Status check(const CallOptions& options) const;
  /// Copies the inputs that the caller may change or free before the call is delivered.
  Status own_inputs(Call& call, const CallOptions& options, Caller caller) const;
  static std::shared_ptr<SessionTask> make_task(Call call, const CallOptions& options);
  std::shared_ptr<FutureState> make_future();
  /// Waits for room and pace, and accepts the task. kTimeout, kCancelled, kWrongState.
  Status submit_task(const std::shared_ptr<SessionTask>& task, Submission& submission);
  /// Hands a batch over whose last task is done.
  void deliver_batch(BatchCall& batch, std::size_t delivered_tasks) noexcept;

  /// Takes a task out of the queue, or out of the device's: true, and kCancelled is delivered.
  /// `terminated`: by its CallControl.
  bool cancel(const std::shared_ptr<SessionTask>& task, bool terminated = false);
  /// Whether a task was given a context; true where it is gone.
  bool started(const std::shared_ptr<SessionTask>& task) const;

  // session_close.cpp
  Status close(TimePoint deadline, const std::function<bool()>& interrupted = {});
  bool closed() const;
  bool wait_callbacks(TimePoint until);
  SessionStatistics statistics() const;
  device::MemoryFigures memory() const;
  device::EngineChoice engine() const;

 private:
  /// A task and the context it was given.
  struct Start {
    std::shared_ptr<SessionTask> task;  ///< Null for a call that runs in its caller's thread.
    std::uint64_t id = 0;
    SessionWorker* worker = nullptr;
    bool waits_for_room = false;  ///< In the device's line.
  };

  // session_call.cpp
  /// Lets the call's control cancel the task. kCancelled when it has terminated its calls.
  Status attach(const std::shared_ptr<SessionTask>& task, const CallOptions& options);
  Result<Outputs> run_queued(Call call, const CallOptions& options);
  /// Empty where the call must wait, or its caller may want to stop it meanwhile.
  std::optional<Start> start_in_place(const Call& call, const CallOptions& options);
  Status run_in_place(Call& call, const CallOptions& options, const Start& start);
  Result<Outputs> wait_for(const std::shared_ptr<SessionTask>& task, FutureState& future,
                           const CallOptions& options);
  bool may_run_in_place(const CallOptions& options) const;
  bool is_short(const Call& call) const CORELANE_REQUIRES(mutex_);
  /// Of the first call, of which nothing is measured yet. Nodes may be looked at: no lock is held.
  bool has_little_work(const Program& program, const Call& call) const;
  /// submit_task() for a caller that goes on; false when it would have to wait and may not.
  Result<bool> submit_call(const std::shared_ptr<SessionTask>& task, const CallOptions& options,
                           bool waits);

  // session_close.cpp
  Result<bool> wait_quiet(TimePoint deadline, const std::function<bool()>& interrupted,
                          bool in_callback);
  Status cancel_waiting();

  // session_core.cpp
  Status enter(MutexLock& lock, Submission& submission, const SessionTask* task)
      CORELANE_REQUIRES(mutex_);
  Start start_of(Assignment assignment) CORELANE_REQUIRES(mutex_);
  /// The next waiting task that has an idle context.
  std::optional<Start> next_start() CORELANE_REQUIRES(mutex_);
  /// The same, unless a call further up this thread's stack starts tasks of this session: that one
  /// looks again.
  std::optional<Start> next_start_here() CORELANE_REQUIRES(mutex_);
  /// Starts this task, and then those that find an idle context. None: does nothing.
  /// `from_callback`: this thread is in a callback of the device, which returns soon.
  void start_tasks(std::optional<Start> next, bool from_callback) noexcept;
  /// Binds and submits; the next one to start, if there is one.
  std::optional<Start> start(const Start& start, bool from_callback) noexcept;
  /// The device's line is full: leaves the start to a thread that waits for room. False where the
  /// system gives no thread.
  bool await_room(const Start& refused) noexcept;
  void start_awaited(const Start& start) noexcept;
  void complete(SessionWorker& worker, const std::shared_ptr<SessionTask>& task, Status status,
                const RunTimes& times, const device::JobRecord& record) noexcept;
  /// The context's part of a completion. A success is a sample of the pace.
  void release(const SessionWorker& worker, const Status& status, const RunTimes& times)
      CORELANE_REQUIRES(mutex_);
  /// The inputs of a task that is done, unless its maker releases them.
  static std::vector<CallInput> take_inputs(SessionTask& task) noexcept;
  /// The deadline of a task has come; one that waits is withdrawn.
  void expire(const std::shared_ptr<SessionTask>& task) noexcept;
  /// Delivers a task that never started.
  void deliver_withdrawn(const std::shared_ptr<SessionTask>& task, const Status& status) noexcept;
  void deliver(SessionTask& task, const Status& status) noexcept;
  void deliver_to_callback(std::uint64_t ticket, std::uint64_t id, RunCallback callback,
                           Result<Outputs> result, std::size_t delivered_tasks) noexcept;
  void tasks_delivered(std::size_t tasks);
  void callback_returned();
  /// Releases what the caller lent in the callback thread: its deleter may be a user's, and may
  /// hold this session.
  void drop(std::vector<CallInput> inputs) noexcept;
  void print(const PerfFigures& figures) const noexcept;

  const SessionOptions options_;
  const std::shared_ptr<device::Device> device_;
  const std::shared_ptr<Clock> clock_;
  const SessionModel model_;
  const std::vector<std::string> warnings_;
  const std::uint64_t fork_count_;
  const bool perf_;
  const std::size_t duplicated_;
  const std::vector<std::int32_t> context_cores_;
  const std::optional<device::CoreSet> all_cores_;  ///< Of the schedule, for tasks that are alone.
  const SessionThreads threads_;
  AbandonedCalls abandoned_;

  mutable Mutex mutex_{LockRank::kSession};
  std::condition_variable room_;   ///< A task left the queue, or none enters any more.
  std::condition_variable quiet_;  ///< The last task was delivered, or its callback returned.
  TaskQueue queue_ CORELANE_GUARDED_BY(mutex_);
  ShortRuns short_runs_ CORELANE_GUARDED_BY(mutex_);  ///< Of a model with open shapes.
  dispatch::CallbackOrder<std::function<void()>> order_ CORELANE_GUARDED_BY(mutex_);
  std::vector<Program> programs_ CORELANE_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<SessionWorker>> workers_ CORELANE_GUARDED_BY(mutex_);
};

/// kWrongState: how a forked child refuses the sessions and calls of its parent. `what`: "the
/// session was made".
Status forked_status(std::string_view what);

/// kCancelled, as a CallControl does it.
Status terminated_status();

/// The outputs of a call that is done, or why there are none.
Result<Outputs> outputs_of(Call& call, const Status& status);

}  // namespace corelane::session
