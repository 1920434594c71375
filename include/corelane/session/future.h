/// The result of one asynchronous call, when it comes.
///
///     Future later = session.submit(feed).value();
///     Result<Outputs> outputs = later.get();          // or co_await later
#pragma once

#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/session/tensor.h"

namespace corelane {

/// The outputs asked for, in that order.
using Outputs = std::vector<Tensor>;

/// Called once with the number of the task and its outputs, or why there are none, in the
/// session's callback thread. An exception it throws goes to the log.
using RunCallback = std::function<void(std::uint64_t task, Result<Outputs> outputs)>;

namespace session {
struct FutureState;
}

/// A cheap handle; copies stand for the same call. Dropping it does not cancel the work. Resolved
/// exactly once. A default-made one stands for no call (kWrongState). Any thread.
class CORELANE_API Future {
 public:
  Future() = default;
  bool valid() const noexcept { return state_ != nullptr; }
  bool done() const noexcept;
  /// Number of the task, from 0; of a batch, that of its first sample.
  std::uint64_t task_id() const noexcept;
  /// Waits for the result; false when `until` (on the device's clock) came first.
  bool wait(TimePoint until = kNever) const;
  /// Waits for the result and returns it, as often as it is asked. A process that was forked while
  /// the call went on never gets it: there the future is done, with kWrongState.
  Result<Outputs> get() const;
  /// True when the task had not started: it resolves with kCancelled.
  bool cancel();
  /// Calls `f` once when resolved, on the session's callback thread (never on a core's), in no
  /// particular order with other callbacks. It may call any function; an exception goes to the log.
  /// In a forked child of the process that made the call: at once, in this thread.
  void then(std::function<void(const Result<Outputs>&)> f) const;

  /// Suspends until resolved; the coroutine goes on in the session's callback thread.
  struct Awaiter;
  Awaiter operator co_await() const;

 private:
  friend class Session;
  std::shared_ptr<session::FutureState> state_;
};

struct Future::Awaiter {
  Future future;
  bool await_ready() const { return future.done() || !future.valid(); }
  void await_suspend(std::coroutine_handle<> waiting) const {
    // The coroutine may be over, and this awaiter with it, before then() returns.
    const Future keep = future;
    keep.then([waiting](const Result<Outputs>&) { waiting.resume(); });
  }
  Result<Outputs> await_resume() const { return future.get(); }
};

inline Future::Awaiter Future::operator co_await() const { return {*this}; }

}  // namespace corelane
