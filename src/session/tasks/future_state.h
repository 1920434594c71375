/// What the handles of one call share: its result, and who waits for it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/fork.h"
#include "base/sync.h"
#include "corelane/base/clock.h"
#include "corelane/session/future.h"
#include "session/fork_guard.h"

namespace corelane::dispatch {
class CallbackThread;
}

namespace corelane::session {

class SessionCore;
struct SessionTask;
struct BatchCall;

struct FutureState {
  FutureState(std::shared_ptr<Clock> c, std::shared_ptr<dispatch::CallbackThread> t)
      : clock(std::move(c)), callbacks(std::move(t)) {}

  /// The first call decides; true for it.
  bool resolve(Result<Outputs> value);
  bool resolved() const noexcept { return done.load(std::memory_order_acquire); }
  /// Of a call whose session stayed in the parent process: it cannot be resolved any more, and its
  /// mutex may be locked for ever.
  bool lost() const noexcept { return !resolved() && fork_count() != generation; }
  /// True at once when it is lost.
  bool wait(TimePoint until);
  /// Waits until it is resolved, and asks meanwhile; false when it was interrupted. A null function
  /// never interrupts.
  bool wait(const std::function<bool()>& interrupted);
  void then(std::function<void(const Result<Outputs>&)> f);

  const std::shared_ptr<Clock> clock;
  const std::shared_ptr<dispatch::CallbackThread> callbacks;
  const std::uint64_t generation = fork_count();
  std::atomic<std::uint64_t> task_id{0};
  /// Set before the future is handed out.
  std::weak_ptr<SessionCore> core;
  std::weak_ptr<SessionTask> task;
  std::weak_ptr<BatchCall> batch;

  Mutex mutex{LockRank::kFuture};
  std::condition_variable changed;
  std::atomic<bool> done{false};
  Result<Outputs> result = error(Code::kWrongState, "the call is not resolved yet");
  std::vector<std::function<void(const Result<Outputs>&)>> continuations;
};

}  // namespace corelane::session
