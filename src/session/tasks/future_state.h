/// What the handles of one call share: its result, and the threads that wait for it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "base/reserve.h"
#include "base/sync.h"
#include "corelane/base/clock.h"
#include "corelane/session/future.h"

namespace corelane::dispatch {
class CallbackThread;
}

namespace corelane::session {

class BatchCall;
class SessionCore;
struct SessionTask;

/// A function that waits for a result: it is called once, or withdrawn. Held by a shared_ptr. Any
/// thread.
class ContinuationState : public std::enable_shared_from_this<ContinuationState> {
 public:
  using Function = std::function<void(const Result<Outputs>&)>;
  ContinuationState(Function f, std::shared_ptr<dispatch::CallbackThread> thread) noexcept
      : thread_(std::move(thread)), call_(std::move(f)) {}

  /// Calls the function in the thread of continuations.
  void deliver(Result<Outputs> value) noexcept;
  /// Calls it here and now.
  void call(const Result<Outputs>& value);
  /// Drops the function, and its place in the thread's line. Nothing in a forked child.
  void withdraw() noexcept;

 private:
  bool end(Function& f, Result<Outputs>& value);

  const std::shared_ptr<dispatch::CallbackThread> thread_;
  const std::uint64_t made_after_forks_ = fork_count();
  Mutex mutex_{LockRank::kLeaf};
  Function call_ CORELANE_GUARDED_BY(mutex_);
  Result<Outputs> value_ CORELANE_GUARDED_BY(mutex_);
  std::uint64_t number_ CORELANE_GUARDED_BY(mutex_) = 0;  ///< Of the job; 0: there is none.
  bool over_ CORELANE_GUARDED_BY(mutex_) = false;
};

struct FutureState {
  FutureState(std::shared_ptr<Clock> c, std::shared_ptr<dispatch::CallbackThread> t)
      : clock(std::move(c)), thread(std::move(t)) {}

  /// The first call decides; true for it.
  bool resolve(Result<Outputs> value) noexcept;
  bool resolved() const noexcept { return done.load(std::memory_order_acquire); }
  /// Whether the session of the call stayed in the parent process: then the call cannot be resolved
  /// any more, and its mutex may be held by a thread that does not exist here.
  bool lost() const noexcept { return !resolved() && fork_count() != made_after_forks; }
  /// True at once when it is lost.
  bool wait(TimePoint until);
  /// Waits until it is resolved, and asks meanwhile; false when it was interrupted. A null function
  /// never interrupts.
  bool wait(const std::function<bool()>& interrupted);
  /// Delivers the result to it once there is one; where it is lost, calls it here and now.
  void then(std::shared_ptr<ContinuationState> continuation) noexcept;
  /// Moves the result out: for the only holder of a resolved future.
  Result<Outputs> take() { return std::move(result); }

  const std::shared_ptr<Clock> clock;
  const std::shared_ptr<dispatch::CallbackThread> thread;  ///< Of the session's continuations.
  const std::uint64_t made_after_forks = fork_count();
  std::atomic<std::uint64_t> task_id{0};
  /// Set before the future is handed out.
  std::weak_ptr<SessionCore> core;
  std::weak_ptr<SessionTask> task;
  std::weak_ptr<BatchCall> batch;

  Mutex mutex{LockRank::kFuture};
  std::condition_variable changed;
  std::atomic<bool> done{false};
  Result<Outputs> result;  ///< Written under the mutex before `done`, and the same from then on.
  SureVector<std::shared_ptr<ContinuationState>> continuations CORELANE_GUARDED_BY(mutex);
};

}  // namespace corelane::session
