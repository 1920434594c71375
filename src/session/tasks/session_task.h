/// One accepted (or entering) task of a session.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "corelane/base/clock.h"
#include "corelane/runtime/context.h"
#include "corelane/session/future.h"
#include "session/tasks/call.h"

namespace corelane::session {

struct FutureState;
struct BatchCall;

enum class TaskState : std::uint8_t { kEntering, kWaiting, kStarted, kDone };

/// Guarded by the core's mutex, but for `call` and the receivers, which belong to whoever has the
/// task: its maker until it is accepted, then the thread that starts it, then the one that
/// completes it.
struct SessionTask {
  Call call;
  // Who gets the result; one of them is set.
  std::shared_ptr<FutureState> future;
  RunCallback callback;
  std::shared_ptr<BatchCall> batch;
  std::size_t sample = 0;  ///< Of the batch.

  Duration timeout{0};
  std::int32_t priority = 0;
  std::optional<std::uint64_t> tag;

  std::uint64_t id = 0;
  std::uint64_t ticket = 0;  ///< Of its callback.
  bool draws_ticket = false;
  std::size_t queue = 0;
  std::int32_t wanted_core = -1;
  TaskState state = TaskState::kEntering;
  bool terminated = false;  ///< While it was entering, or between its start and its inference.
  /// The thread that made it waits, and takes the inputs back itself.
  bool maker_waits = false;
  bool resolved = false;
  TimePoint deadline = kNever;
  Clock::TimerId timer = 0;  ///< For the deadline, while it waits.
  bool has_timer = false;
  Inference inference;  ///< While it is started.
  bool has_inference = false;
  Duration set_input{};  ///< Only measured for the per-task line.
};

/// The calls that a switch stops.
struct ControlState {
  std::mutex mutex;
  std::atomic<bool> terminated{false};
  std::vector<std::pair<std::weak_ptr<SessionCore>, std::weak_ptr<SessionTask>>> calls;
};

}  // namespace corelane::session
