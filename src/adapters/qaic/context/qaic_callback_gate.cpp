#include "adapters/qaic/context/qaic_callback_gate.h"

#include "base/guard.h"
#include "corelane/base/log.h"

namespace corelane::qaic {
namespace {

/// Calls of gates that this thread is in.
thread_local std::size_t depth = 0;

}  // namespace

bool CallbackGate::in_call() noexcept { return depth > 0; }

bool CallbackGate::enter() noexcept {
  const MutexLock lock(mutex_);
  if (closed_) return false;
  ++running_;
  ++depth;
  return true;
}

bool CallbackGate::reserve() noexcept {
  const MutexLock lock(mutex_);
  // Without `depth`: the call comes later, and maybe in another thread.
  if (!closed_) ++running_;
  return !closed_;
}

bool CallbackGate::enter_due() noexcept {
  const MutexLock lock(mutex_);
  if (!dropped_) {
    ++depth;
    return true;
  }
  if (--running_ == 0) idle_.notify_all();
  return false;
}

void CallbackGate::leave() noexcept {
  const MutexLock lock(mutex_);
  --depth;
  // Under the lock: the gate may go as soon as close() returns.
  if (--running_ == 0) idle_.notify_all();
}

void CallbackGate::caught(std::string_view what) noexcept {
  // The code of somebody else's work, so that the text of std::bad_alloc is shown too.
  const Status thrown = status_of_exception(what, Code::kEngineFailed);
  if (thrown_.fetch_add(1, std::memory_order_relaxed) == 0)
    log::write(log::Level::kWarn, "qaic", thrown.message());
}

void CallbackGate::close() noexcept {
  MutexLock lock(mutex_);
  closed_ = true;
  if (depth > 0) dropped_ = true;
  while (running_ > 0 && depth == 0) idle_.wait(lock.native());
}

}  // namespace corelane::qaic
