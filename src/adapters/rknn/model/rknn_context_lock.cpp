#include "adapters/rknn/model/rknn_context_lock.h"

#include "adapters/rknn/api/rknn_handle.h"

namespace corelane::rknn {
namespace {

thread_local int operators = 0;  ///< Callbacks that this thread is in, one inside the other.

}  // namespace

bool inside_operator() noexcept { return operators != 0; }

OperatorScope::OperatorScope() noexcept { ++operators; }
OperatorScope::~OperatorScope() { --operators; }

void ContextMutex::close(rknn_context handle) CORELANE_NO_THREAD_SAFETY_ANALYSIS {
  mutex_.lock();
  closed_ = handle;
}

void ContextMutex::unlock() CORELANE_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }

// The analysis cannot follow a lock that is sometimes refused.
ContextLock::ContextLock(ContextMutex& mutex) CORELANE_NO_THREAD_SAFETY_ANALYSIS : mutex_(mutex) {
  if (!inside_operator()) [[likely]] {
    mutex_.mutex_.lock();
  } else {
    const bool own = mutex_.holder_.load(std::memory_order_relaxed) == std::this_thread::get_id();
    const bool locked = !own && mutex_.mutex_.try_lock();
    if (!locked || (mutex_.in_use_ && mutex_.in_use_())) {
      if (locked) mutex_.mutex_.unlock();
      refused_ = Status(Code::kWrongState, std::string(mutex_.refusal_));
      return;
    }
  }
  if (mutex_.closed_ != 0) {
    mutex_.mutex_.unlock();
    refused_ = {RKNN_ERR_CTX_INVALID, stale_handle(mutex_.closed_)};
    return;
  }
  mutex_.holder_.store(std::this_thread::get_id(), std::memory_order_relaxed);
}

ContextLock::~ContextLock() CORELANE_NO_THREAD_SAFETY_ANALYSIS {
  if (!ok()) return;
  mutex_.holder_.store({}, std::memory_order_relaxed);
  mutex_.mutex_.unlock();
}

}  // namespace corelane::rknn
