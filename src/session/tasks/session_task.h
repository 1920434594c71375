/// One task of a session: what it computes, who gets the result, and where it is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "corelane/base/clock.h"
#include "corelane/runtime/context.h"
#include "corelane/session/future.h"
#include "session/tasks/call.h"
#include "session/tasks/task_state.h"

namespace corelane::session {

struct FutureState;
class BatchCall;

struct SessionTask {
  // These belong to one thread at a time: the task's maker until it is accepted, then the thread
  // that starts it, then the one that completes it. `call.inputs` change hands under the lock.
  Call call;
  std::shared_ptr<FutureState> future;  ///< One of these three gets the result.
  RunCallback callback;
  std::shared_ptr<BatchCall> batch;
  std::size_t sample = 0;  ///< Of the batch.
  Duration set_input{};    ///< Only measured for the per-task line.

  // Set by its maker before it is submitted.
  Duration timeout{0};
  std::int32_t priority = 0;
  std::optional<std::uint64_t> tag;
  bool draws_ticket = false;  ///< Its result, or that of the batch it ends, goes to a callback.

  // Set when it is accepted, and the same from then on.
  std::uint64_t id = 0;
  std::uint64_t ticket = 0;  ///< The place of its callback, where it draws one.
  std::size_t lane = 0;
  std::int32_t wanted_core = -1;
  TimePoint deadline = kNever;
  std::optional<Clock::TimerId> timer;  ///< For the deadline, where it had to wait.

  // Guarded by the session's lock.
  TaskProgress progress;
  std::atomic<bool> given_up{false};  ///< In kStopping. The wait for room reads it, without lock.
  bool terminated = false;            ///< Its CallControl has cancelled it.
  /// The thread that made it waits for it, and releases the inputs itself.
  bool maker_waits = false;
  /// In kRunning. Written before its completion is asked for, so the completing thread reads it
  /// without the lock.
  Inference inference;
};

}  // namespace corelane::session
