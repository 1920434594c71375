/// A session: a model on a device, run by many callers at once.
///
///     SessionOptions options;
///     options.load.device = "virtual:rk3588";
///     options.schedule = {0, 1, 2};
///     Session session = Session::create("model.onnx", options).value();
///     Outputs outputs = session.run({{"x", view_of_my_pixels}}).value();
///     session.run_async(feed, [](std::uint64_t task, Result<Outputs> outputs) { ... });
///
/// Every call, blocking or not, is a task with a number: 0, 1, 2, ... of the accepted ones. The
/// schedule says on which core task t runs; the queue says how many wait. Nothing here says how.
///
/// Threads: a session has one thread of its own for callbacks, and one for continuations of futures
/// and for coroutines, each from the first of them on. Tasks run on the device's threads, or for
/// run() in the caller's when the core is idle. All functions from any thread, also from inside a
/// callback of any session: nothing waits there for a callback.
///
/// Lifetime: a Session is a cheap handle. When the last one goes, accepted tasks are finished and
/// called back first (inside a callback that happens after it has returned). close() does the same
/// with a time limit. In a forked child a session of the parent is refused (kWrongState) without a
/// wait: it shows as closed(), its figures are zeros, calls that were not resolved are lost
/// (Future::get). No session on the virtual NPU can be made there once the parent has made one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/runtime/context.h"
#include "corelane/runtime/program.h"
#include "corelane/session/future.h"
#include "corelane/session/io_binding.h"
#include "corelane/session/session_options.h"
#include "corelane/session/session_statistics.h"
#include "corelane/tensor/tensor.h"

namespace corelane {

namespace session {
class SessionCore;
class SessionOwner;
struct ControlState;
}  // namespace session

/// How a session is made: where its tasks run, how many wait, in which order it calls back. A
/// value; nothing is opened or started before Session::create.
struct SessionOptions {
  /// Device, precision, host operators, compile settings, and an opened device (`load.on`), whose
  /// clock is the session's.
  LoadOptions load;

  /// Cores by task, with repeats; not together with tp_mode. Empty: none.
  std::vector<std::size_t> schedule;
  /// Cores of all tasks; without a schedule, kAuto.
  std::optional<TpMode> tp_mode;
  /// Contexts of each core of the schedule (or of the session, with tp_mode); 1 to 64.
  std::int64_t threads_per_core = 1;
  PlacementPolicy placement = PlacementPolicy::kFormula;

  /// Spreads submissions evenly: one per (average device time) / (cores of the schedule).
  bool enable_pacing = false;
  /// Every context loads the program itself, instead of sharing that of the first. Custom operators
  /// and weights_from switch it on.
  bool disable_dup_context = false;
  /// Accepted tasks that have not started; at least 1.
  std::int64_t max_queue_size = 3;
  /// How long a submission waits for room or for its pace; more than 0.
  Duration submit_timeout = std::chrono::seconds(10);
  /// How long a task may take once the session has handed it to the device, waiting for a core that
  /// others use included; 0: none, else more than 0. Then it fails with kTimeout, its core is
  /// reset, and later tasks run. With it, no call runs in its caller's thread.
  Duration run_timeout{0};
  /// Callbacks in the order of submission; else in that of completion.
  bool sequential_callbacks = true;
  /// Tasks that are done and whose callback has not returned; at least 1. More hold submissions up.
  std::int64_t max_pending_callbacks = 8;

  InputLayout layout = InputLayout::kNchw;
  InputRules input_rules = InputRules::kStrict;
  /// Lenient inputs of rank 4 are normalised with the program's mean and std.
  bool normalize = false;
  OutputForm output_form = OutputForm::kDeclared;

  /// Per-task lines: to stderr when unset and `CORELANE_PRINT_PERF` is 1, true, on or yes at
  /// creation; false: never; true: always.
  std::optional<bool> print_perf;
  /// Receives the per-task lines instead of stderr. Called in a thread of the session; must not
  /// block or call the session.
  std::function<void(std::string_view)> perf_sink;
};

/// One input of a call. The memory is the caller's: run() reads it until it returns; the
/// asynchronous calls copy it, or, with CallOptions::borrow, read it until the call is resolved.
struct FeedItem {
  std::string_view name;  ///< Empty: by position (all items or none).
  TensorView view;
  std::shared_ptr<const void> keep_alive;  ///< Held while the memory is read; may be null.
};
using Feed = std::vector<FeedItem>;

/// A switch to stop calls from another thread: waiting tasks that were started with it fail with
/// kCancelled at once, and so do later calls until reset(). A task that runs is not stopped.
/// A cheap handle; any thread.
class CORELANE_API CallControl {
 public:
  /// A switch that stops nothing yet.
  CallControl();
  /// Copies are the same switch, and so is what is moved from.
  CallControl(const CallControl&) = default;
  CallControl& operator=(const CallControl&) = default;
  /// Cancels waiting tasks, and refuses later calls.
  void terminate();
  /// Lets later calls run again.
  void reset();
  /// Whether later calls are refused.
  bool terminated() const noexcept;

 private:
  friend class session::SessionCore;
  friend class Session;
  std::shared_ptr<session::ControlState> state_;
};

/// How one call runs.
struct CallOptions {
  /// Names of the outputs wanted, repeats allowed. Empty: all, in model order.
  std::vector<std::string> outputs;
  /// From acceptance to result; 0: none. kTimeout then; a task that runs is abandoned.
  Duration timeout{0};
  /// How long the submission, of a batch that of each sample, waits for room and pace. 0 inherits
  /// SessionOptions::submit_timeout.
  Duration submit_timeout{0};
  /// For the records of the device; without it, the task's number.
  std::optional<std::uint64_t> tag;
  std::int32_t priority = 0;  ///< -128 to 127, higher first where tasks of others wait too.
  std::optional<CallControl> control;
  /// Asynchronous calls do not copy inputs; keep them until the call is resolved.
  bool borrow = false;
  /// Asked about every 20 ms while the call waits, for room, pace or its result, in the calling
  /// thread. True ends the wait with kCancelled: a waiting task is dropped, a running one goes on
  /// without its caller, so blocking calls copy inputs that have no `keep_alive`.
  std::function<bool()> interrupted;
};

/// See the top of this page. A default-made one stands for no session (kWrongState).
class CORELANE_API Session {
 public:
  /// From a program file, an ONNX file or (where the device takes it) a vendor-compiled file.
  /// Options are checked before anything is made; a failure leaves no thread and no context.
  /// `weights_from`: takes the constants of a program compiled without its own from that session,
  /// which may go first.
  static Result<Session> create(const std::filesystem::path& path,
                                const SessionOptions& options = {},
                                const Session* weights_from = nullptr);
  /// From memory, which is copied.
  static Result<Session> create(ByteSpan bytes, const SessionOptions& options = {},
                                const Session* weights_from = nullptr);

  Session() = default;
  /// Whether it stands for a session.
  bool valid() const noexcept { return owner_ != nullptr; }

  /// Runs and waits. Errors of the call: kNotFound, kInvalidArgument (names; all are listed),
  /// kShapeMismatch, kTypeMismatch; kTimeout (no room in time), kCancelled, kWrongState (closed);
  /// else those of the device. Its codes of arguments, and of a time that is not the caller's, are
  /// kEngineFailed with the device's failure as the cause.
  Result<Outputs> run(const Feed& feed, const CallOptions& options = {});
  /// Runs with bound memory and waits; the result is IoBinding::outputs. kInvalidArgument when an
  /// input is not bound or the binding is of another session.
  Status run(IoBinding& binding, const CallOptions& options = {});

  /// Submits and returns the task's number; waits while the queue is full (kTimeout). On a failure
  /// the callback is not called.
  Result<std::uint64_t> run_async(const Feed& feed, RunCallback callback,
                                  const CallOptions& options = {});
  /// The same without waiting: nullopt, and no callback, when it is too early or full.
  Result<std::optional<std::uint64_t>> try_run_async(const Feed& feed, RunCallback callback,
                                                     const CallOptions& options = {});
  /// Submits and returns its future. Does not count as a callback.
  Result<Future> submit(const Feed& feed, const CallOptions& options = {});
  /// The same without waiting: nullopt when it is too early or full.
  Result<std::optional<Future>> try_submit(const Feed& feed, const CallOptions& options = {});
  /// Submits when it is called; `co_await` gives the Result<Outputs>. The coroutine goes on in the
  /// thread of continuations. A failure to submit comes out of co_await too.
  class Awaitable;
  /// Errors as submit().
  Awaitable run_awaitable(const Feed& feed, const CallOptions& options = {});

  /// Splits dimension 0 of every input into single tasks and puts their outputs together in order.
  /// The model's dimension 0 must be 1 or open, the inputs' equal and at least 1. One failed sample
  /// fails the call, after all are done. Not with InputLayout other than a leading N.
  Result<Outputs> run_batch(const Feed& feed, const CallOptions& options = {});
  /// The same without waiting for the result; one future for the whole batch.
  Result<Future> submit_batch(const Feed& feed, const CallOptions& options = {});
  /// The same with one callback for the whole batch; the number of its first task.
  Result<std::uint64_t> run_batch_async(const Feed& feed, RunCallback callback,
                                        const CallOptions& options = {});

  /// Submits `feed` and returns the outputs of the call `depth` calls ago; nullopt for the first
  /// `depth` calls. `reset` or another depth drops what is pending (the tasks still run). A task's
  /// failure is that of the call that returns it. One pipeline per session. An interrupted wait
  /// loses nothing: the outputs it waited for are those of the next call.
  Result<std::optional<Outputs>> run_pipeline(const Feed& feed, std::size_t depth = 3,
                                              bool reset = false, const CallOptions& options = {});
  /// Waits for what the pipeline still holds and returns it in order, each with its result.
  /// An interrupted wait takes nothing and returns nothing. In a forked child: one result,
  /// kWrongState.
  std::vector<Result<Outputs>> flush(const std::function<bool()>& interrupted = {});
  /// Waits for what the pipeline still holds and drops it; the first failure of it.
  Status drain();

  /// A binding of this session, with nothing bound. kWrongState in a forked child.
  Result<IoBinding> io_binding();

  /// Refuses new calls (kWrongState), and waits until accepted tasks are done and called back, at
  /// most `timeout`. kTimeout: waiting tasks were cancelled; those that run go on, and a later call
  /// waits for them. Inside a callback, of whichever session, it does not wait: what is left is
  /// finished afterwards. Closed contexts are freed. `interrupted` as in CallOptions: kCancelled,
  /// tasks go on, and a later call waits for them.
  Status close(Duration timeout = Duration::max(), const std::function<bool()>& interrupted = {});
  /// Whether new calls are refused; also true in a forked child, and without a session.
  bool closed() const noexcept;
  /// Waits until no callback and no continuation is due or running; false when `until` came first.
  /// Inside a callback it does not wait; false in a forked child.
  bool wait_callbacks(TimePoint until = kNever);
  /// Closes every session of this process, within `timeout` in all: for use at exit. kTimeout as
  /// close(). Leaves those of the parent of a fork alone.
  static Status close_all(Duration timeout = Duration::max());

  /// The inputs as run() takes them: names, types, shapes in the order of the session's layout.
  std::vector<TensorDesc> inputs() const;
  /// The outputs as run() gives them: names, types and quantization, shapes in model order.
  std::vector<TensorDesc> outputs() const;
  /// As the program declares them: native types, quantization, mean and std.
  const ProgramDescription& description() const;
  /// The inputs of description(): native types, quantization, mean and std.
  std::vector<IoEntry> native_inputs() const;
  /// The outputs of description().
  std::vector<IoEntry> native_outputs() const;
  /// What is in force: defaults filled in, tp_mode set where there is no schedule.
  const SessionOptions& options() const;
  /// Remarks at creation, such as contexts that could not be duplicated.
  const std::vector<std::string>& warnings() const;
  /// The device that runs its tasks; null without a session.
  const std::shared_ptr<device::Device>& device() const;
  /// The device's clock, on which time limits are measured; the machine's without a session.
  const std::shared_ptr<Clock>& clock() const;
  /// Figures of one moment; zeros in a forked child.
  SessionStatistics statistics() const;
  /// The memory of all programs of the session, in bytes; zeros once it is closed.
  device::MemoryFigures memory() const;
  /// Which of the device's engines computes the session's tasks by now, and why it is not the
  /// device's own: see Program::engine(). Empty texts once the session is closed.
  device::EngineChoice engine() const;

  /// Sizes the device's ring of records, which all its users share; 0 switches it off. Errors are
  /// those of the device.
  Status set_trace(std::size_t records_per_core);
  /// The records in the ring; the tag of each is the task's number, unless the call gave one.
  Result<std::vector<device::JobRecord>> read_trace() const;

  bool operator==(const Session&) const = default;

 private:
  std::shared_ptr<session::SessionOwner> owner_;
};

/// What Session::run_awaitable returns, to be awaited once.
class Session::Awaitable {
 public:
  /// Waits for a call that was submitted, or gives the failure to submit it.
  explicit Awaitable(Result<Future> future) : future_(std::move(future)) {}
  /// Whether the coroutine need not suspend.
  bool await_ready() const { return !future_ || future_->done(); }
  /// Resumes the coroutine in the thread of continuations once the call is resolved.
  void await_suspend(std::coroutine_handle<> waiting) const {
    Future::Awaiter{*future_}.await_suspend(waiting);
  }
  /// The outputs, or why there are none.
  Result<Outputs> await_resume() const {
    if (!future_) return error(future_.error());
    return future_->get();
  }

 private:
  Result<Future> future_;
};

}  // namespace corelane
