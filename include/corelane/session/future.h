/// The result of one asynchronous call, when it comes.
///
///     Future later = session.submit(feed).value();
///     Result<Outputs> outputs = later.get();          // or co_await later
#pragma once

#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/tensor/tensor.h"

namespace corelane {

/// The outputs asked for, in that order.
using Outputs = std::vector<Tensor>;

/// Called once with the number of the task and its outputs, or why there are none, in the
/// session's callback thread. An exception it throws goes to the log.
using RunCallback = std::function<void(std::uint64_t task, Result<Outputs> outputs)>;

namespace session {
class ContinuationState;
struct FutureState;
}  // namespace session

/// A call that Future::then() has promised. A cheap handle; dropping it changes nothing. Any
/// thread.
class CORELANE_API Continuation {
 public:
  Continuation() = default;
  /// Takes the promise back, and drops the function; nothing when the call was made or has begun,
  /// and in a forked child of the process that made the call.
  void withdraw() const noexcept;

 private:
  friend class Future;
  std::shared_ptr<session::ContinuationState> state_;
};

/// A cheap handle; copies stand for the same call. Dropping it does not cancel the work. Resolved
/// exactly once. A default-made one stands for no call (kWrongState). Any thread.
class CORELANE_API Future {
 public:
  Future() = default;
  /// Whether it stands for a call.
  bool valid() const noexcept { return state_ != nullptr; }
  /// Whether get() returns at once.
  bool done() const noexcept;
  /// Whether its task, or a task of its batch, has started, and there is no result yet.
  bool running() const noexcept;
  /// Number of the task, from 0; of a batch, that of its first sample.
  std::uint64_t task_id() const noexcept;
  /// Waits for the result; false when `until` (on the device's clock) came first.
  bool wait(TimePoint until = kNever) const;
  /// Waits for the result and returns it, at every call. In a process that was forked while the
  /// call went on the result never comes: there the future is done, with kWrongState.
  Result<Outputs> get() const;
  /// Cancels a task that has not started: true, and it resolves with kCancelled. False when it is
  /// too late; the result then comes as if this had not been called.
  bool cancel();
  /// Calls `f` once when resolved, on the session's thread of continuations (never on a core's, nor
  /// on that of callbacks), in the order in which they come due. It may call any function; an
  /// exception goes to the log. In a forked child of the process that made the call: at once, in
  /// this thread. A caller that needs the call no longer may withdraw it.
  Continuation then(std::function<void(const Result<Outputs>&)> f) const;

  /// Suspends until resolved; the coroutine goes on in the session's thread of continuations.
  struct Awaiter;
  /// `co_await future` gives what get() returns.
  Awaiter operator co_await() const;

 private:
  friend class Session;
  std::shared_ptr<session::FutureState> state_;
};

/// What `co_await` asks of a future; not for other use.
struct Future::Awaiter {
  Future future;
  /// Whether the coroutine need not suspend.
  bool await_ready() const { return future.done() || !future.valid(); }
  /// Resumes the coroutine in the thread of continuations once the future is resolved.
  void await_suspend(std::coroutine_handle<> waiting) const {
    // The coroutine may be over, and this awaiter with it, before then() returns.
    const Future keep = future;
    keep.then([waiting](const Result<Outputs>&) { waiting.resume(); });
  }
  /// The result, as Future::get.
  Result<Outputs> await_resume() const { return future.get(); }
};

/// Awaits a copy of this future.
inline Future::Awaiter Future::operator co_await() const { return {*this}; }

}  // namespace corelane
