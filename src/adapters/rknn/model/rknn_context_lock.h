/// The lock that puts the functions of one context in order.
///
/// It orders everything that works with the context's tensors, shapes, bound memory and runs, and
/// is held for the whole of such a function: while data are converted, while a blocking run goes
/// on, while a program is compiled anew (rknn_set_weight_mem) or an operator initialised
/// (rknn_register_custom_ops). The API promises that order, so a second caller has nothing to do
/// meanwhile. Queries, rknn_dup_context's work and contexts that are opened do not take part.
///
/// Every other mutex of the library may be taken while it is held; it is taken while none is. A
/// function that needs it and is called inside a custom operator does not wait: the operator's run
/// may hold it, in this thread or in another, so the function fails where the context is in use.
#pragma once

#include <atomic>
#include <functional>
#include <string_view>
#include <thread>

#include "adapters/rknn/api/rknn_edge.h"
#include "base/sync.h"
#include "rknn_api.h"

namespace corelane::rknn {

/// True while this thread is inside a callback of a custom operator, of whichever context.
bool inside_operator() noexcept;

/// Marks this thread as being inside such a callback.
class OperatorScope {
 public:
  OperatorScope() noexcept;
  ~OperatorScope();
  OperatorScope(const OperatorScope&) = delete;
  OperatorScope& operator=(const OperatorScope&) = delete;
};

/// What a ContextLock holds; one for each context.
class CORELANE_THREAD_ATTRIBUTE_(capability("mutex")) ContextMutex {
 public:
  /// `refusal` is the message for a function that is called inside a custom operator while the
  /// context is in use; `in_use` says whether it is while no function holds the lock.
  explicit ContextMutex(std::string_view refusal, std::function<bool()> in_use = {})
      : refusal_(refusal), in_use_(std::move(in_use)) {}

  /// Waits for the function that holds the lock, and lets no other have it any more: they find that
  /// `handle` was destroyed. Taken without regard to custom operators, which cannot get here.
  void close(rknn_context handle) CORELANE_ACQUIRE();
  void unlock() CORELANE_RELEASE();

 private:
  friend class ContextLock;

  const std::string_view refusal_;
  const std::function<bool()> in_use_;
  Mutex mutex_{LockRank::kDoorContext};
  std::atomic<std::thread::id> holder_{};  ///< A thread must not try to lock what it holds.
  rknn_context closed_ = 0;                ///< The handle it had, once destroyed. By `mutex_`.
};

/// Holds a context's lock for the length of one function, unless it is refused.
class CORELANE_THREAD_ATTRIBUTE_(scoped_lockable) ContextLock {
 public:
  explicit ContextLock(ContextMutex& mutex) CORELANE_ACQUIRE(mutex);
  ~ContextLock() CORELANE_RELEASE();
  ContextLock(const ContextLock&) = delete;
  ContextLock& operator=(const ContextLock&) = delete;

  /// False: the function must return refused() and touch nothing.
  bool ok() const noexcept { return refused_.code() == RKNN_SUCC; }
  /// Called inside a custom operator while the context is in use; or the context was destroyed
  /// while this waited.
  const Outcome& refused() const noexcept { return refused_; }

 private:
  ContextMutex& mutex_;
  Outcome refused_;
};

}  // namespace corelane::rknn
