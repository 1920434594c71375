/// The working part of a session: decides when and where each task runs.
///
/// One mutex guards the queues. It is never held while the runtime, a device or a user is called.
/// A task goes entering -> waiting -> started -> done; each step belongs to one thread:
///  - enter() makes the caller wait for room and pace, and gives the task its number;
///  - pump() gives waiting tasks to idle contexts, in whichever thread made one of them so;
///  - complete() runs in the thread of the device that finished the job: it frees the context,
///    pumps, and only then hands the result over (a future, the callback thread, a batch).
/// run() may skip all that: when a context is idle the caller takes it and runs in its own thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/sync.h"
#include "corelane/device/device.h"
#include "corelane/session/session.h"
#include "dispatch/admission.h"
#include "dispatch/callback_order.h"
#include "dispatch/callback_thread.h"
#include "dispatch/interrupt_poll.h"
#include "dispatch/pacer.h"
#include "dispatch/placement.h"
#include "session/session_model.h"
#include "session/tasks/perf_line.h"
#include "session/tasks/session_task.h"

namespace corelane::session {

class SessionWorker;

struct SessionParts;

class SessionCore final : public std::enable_shared_from_this<SessionCore> {
 public:
  explicit SessionCore(SessionParts parts);
  ~SessionCore();
  SessionCore(const SessionCore&) = delete;
  SessionCore& operator=(const SessionCore&) = delete;

  const SessionModel& model() const noexcept { return model_; }
  const SessionOptions& options() const noexcept { return options_; }
  const std::shared_ptr<device::Device>& device() const noexcept { return device_; }
  const std::shared_ptr<Clock>& clock() const noexcept { return clock_; }
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }
  const std::shared_ptr<dispatch::CallbackThread>& callbacks() const noexcept { return callbacks_; }
  /// For sessions that take their weights from this one.
  /// Null once it is closed.
  std::shared_ptr<const Program> first_program() const;
  /// kWrongState in a forked child.
  Status usable() const;
  bool forked() const noexcept;

  /// Whether the caller stays until the call is resolved.
  enum class Caller : std::uint8_t { kWaits, kGoesOn };

  // session_call.cpp: one call.
  Result<Outputs> run(Call call, const CallOptions& options);
  Result<std::uint64_t> run_async(Call call, RunCallback callback, const CallOptions& options);
  Result<std::optional<std::uint64_t>> try_run_async(Call call, RunCallback callback,
                                                     const CallOptions& options);
  Result<std::shared_ptr<FutureState>> submit(Call call, const CallOptions& options);
  /// Null when it would have to wait.
  Result<std::shared_ptr<FutureState>> try_submit(Call call, const CallOptions& options);
  Result<std::shared_ptr<FutureState>> submit_batch(std::vector<CallInput> inputs,
                                                    const CallOptions& options, Caller caller,
                                                    RunCallback callback);
  /// Takes a task out of the queue, or out of the device's: true, and it resolves with kCancelled.
  bool cancel(const std::shared_ptr<SessionTask>& task);
  bool cancel_batch(BatchCall& batch);

  // session_close.cpp
  Status close(TimePoint deadline, const std::function<bool()>& interrupted = {});
  bool closed() const;
  bool wait_callbacks(TimePoint until);

  SessionStatistics statistics() const;
  device::MemoryFigures memory() const;

 private:
  struct Lane {
    std::deque<std::shared_ptr<SessionTask>> waiting;
    std::vector<SessionWorker*> idle;
  };
  using Lock = MutexLock;

  /// What a call that enters the queue, or all samples of a batch, have in common.
  struct Entrance {
    explicit Entrance(const CallOptions& options) : poll(options.interrupted, "session") {}
    bool wait = true;
    dispatch::InterruptPoll poll;
    std::optional<TimePoint> since;  ///< When it began to wait for room.
  };

  // session_call.cpp
  Status check_terms(const CallOptions& options) const;
  Status own_inputs(Call& call, const CallOptions& options, Caller caller) const;
  std::shared_ptr<SessionTask> make_task(Call call, const CallOptions& options);
  Status attach(const std::shared_ptr<SessionTask>& task, const CallOptions& options);
  Result<Outputs> run_queued(Call call, const CallOptions& options);
  Result<Outputs> run_here(Call call, const CallOptions& options, SessionWorker& worker,
                           std::uint64_t id);
  Result<Outputs> wait_for(const std::shared_ptr<SessionTask>& task,
                           const std::shared_ptr<FutureState>& future, const CallOptions& options);
  bool may_run_here(const CallOptions& options) const;
  /// Accepts the task that `make` makes, unless it would have to wait: false then.
  Result<bool> try_accept(Call call, const CallOptions& options,
                          const std::function<void(const std::shared_ptr<SessionTask>&)>& prepare);
  std::shared_ptr<FutureState> make_future(const std::shared_ptr<SessionTask>& task);
  // session_batch.cpp
  Status prepare_batch(const CallOptions& options, BatchCall& batch, Call& prototype) const;
  static Call sample_call(const BatchCall& batch, const Call& prototype,
                          const std::vector<CallInput>& inputs, std::size_t sample);

  // session_core.cpp
  /// Waits for room and pace. kTimeout, kCancelled, kWrongState.
  Status enter(Lock& lock, const CallOptions& options, Entrance& entrance, const SessionTask* task);
  Status refused(dispatch::Admission why, Duration waited) const;
  /// Gives a number and a place. The lock is held.
  void number(SessionTask& task, TimePoint now);
  Status accept(const std::shared_ptr<SessionTask>& task, const CallOptions& options,
                Entrance& entrance);
  /// `others`: tasks that wait beside the one it is for.
  SessionWorker* take_idle(Lane& lane, std::int32_t wanted, std::int64_t others);
  std::size_t lane_of(std::uint64_t id, std::int32_t& wanted) const;
  void pump();
  void start(SessionWorker& worker, const std::shared_ptr<SessionTask>& task);
  void complete(SessionWorker& worker, const std::shared_ptr<SessionTask>& task, Status status,
                const RunTimes& times, const device::JobRecord& record);
  // The lock is held by the callers of these three.
  void give_back(SessionWorker& worker, const Status& status, Duration device_time);
  void count(const Status& status);
  void settled();
  void expire(const std::shared_ptr<SessionTask>& task);
  /// Takes a waiting task out; false when it does not wait. The lock is held.
  bool withdraw(SessionTask& task);
  void drop_timer(SessionTask& task);
  void resolve(const std::shared_ptr<SessionTask>& task, const Status& status);
  /// Gives up what the caller lent, in the callback thread: its owner may be a user's, and may hold
  /// this session.
  void drop(std::vector<CallInput> inputs);
  /// A device that was reset may still use the memory of a job that failed.
  void keep_until_released(Inference inference, Call& call);
  void resolve_batch(BatchCall& batch);
  void call_back(std::uint64_t ticket, std::uint64_t id, RunCallback callback,
                 Result<Outputs> result);
  void called_back();
  static Result<Outputs> outputs_of(Call& call, const Status& status);
  void print(const PerfFigures& figures) const;
  bool quiet() const noexcept;

  const SessionOptions options_;
  const std::shared_ptr<device::Device> device_;
  const std::shared_ptr<Clock> clock_;
  const SessionModel model_;
  const std::vector<std::string> warnings_;
  const std::uint64_t generation_;
  const bool perf_;
  const std::size_t contexts_;
  const std::size_t duplicated_;
  const std::vector<std::int32_t> context_cores_;
  const std::shared_ptr<dispatch::CallbackThread> callbacks_;

  mutable Mutex mutex_{LockRank::kSession};
  std::condition_variable room_;   ///< Something left the queue, or nothing enters any more.
  std::condition_variable quiet_;  ///< The last task, or its callback, is done.
  std::vector<Program> programs_;
  std::vector<std::unique_ptr<SessionWorker>> workers_;
  std::vector<Lane> lanes_;
  std::optional<device::CoreSet> all_cores_;  ///< Of the schedule, for tasks that are alone.
  dispatch::AloneInARow alone_;
  std::vector<std::size_t> lane_of_core_;     ///< By core number, with a schedule.
  std::vector<std::size_t> running_by_core_;  ///< By core number + 1; [0]: the device's choice.
  std::int64_t waiting_ = 0;
  std::size_t running_ = 0;
  std::size_t live_ = 0;  ///< Accepted, not resolved.
  std::int64_t pending_callbacks_ = 0;
  bool closing_ = false;
  std::uint64_t next_id_ = 0;
  dispatch::Pacer pacer_;
  dispatch::CallbackOrder<std::function<void()>> order_;
  SessionStatistics counted_;
  struct Abandoned {
    Inference inference;
    std::vector<CallInput> inputs;
    std::vector<CallOutput> outputs;
  };
  std::vector<Abandoned> abandoned_;
  std::atomic<Duration::rep> average_{0};
};

}  // namespace corelane::session
