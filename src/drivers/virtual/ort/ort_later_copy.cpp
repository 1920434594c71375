#include "drivers/virtual/ort/ort_later_copy.h"

#include <utility>

#include "base/fork.h"
#include "base/guard.h"
#include "base/process/heap.h"
#include "base/process/process_end.h"
#include "base/thread.h"
#include "corelane/base/clock.h"
#include "corelane/base/log.h"
#include "drivers/virtual/common/log_part.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {}  // namespace

OrtLaterCopy::OrtLaterCopy(Make make) : make_(std::move(make)), made_in_(fork_count()) {}

OrtLaterCopy::~OrtLaterCopy() {
  std::thread ended;
  if (made_in_ != fork_count()) {
    // The thread is the parent's, and so may be the lock: both are left alone.
    static_cast<void>(new std::thread(std::move(thread_)));
    return;
  }
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    ended_.notify_all();
    ended = std::move(thread_);
  }
  if (ended.joinable()) ended.join();
}

void OrtLaterCopy::note_run() {
  // The count stops where it has done its work, so that it never wraps.
  if (runs_.load(std::memory_order_relaxed) >= kRunsBeforeOptimising) return;
  if (runs_.fetch_add(1, std::memory_order_relaxed) + 1 == kRunsBeforeOptimising &&
      made_in_ == fork_count())
    start();
}

void OrtLaterCopy::start() {
  Status failed;
  {
    const MutexLock lock(mutex_);
    auto started = start_thread("optimising", [this] { work(); });
    if (started) {
      thread_ = std::move(*started);
      running_ = true;
    } else {
      failed = started.error();
    }
  }
  if (!failed.ok()) log::debug(kLogPart, "a network is not optimised: {}", failed.to_string());
}

/// The thread of a forked process stayed in the parent.
void OrtLaterCopy::wait() {
  if (made_in_ != fork_count()) return;
  MutexLock lock(mutex_);
  while (running_) ended_.wait(lock.native());
}

void OrtLaterCopy::work() noexcept {
  Replaced replaced;
  const Status made = no_throw("optimising a network", [&]() -> Status {
    const EngineVisit visit;  // exit() waits for it, or it is too late to begin.
    if (!visit || process_ending()) return error(Code::kCancelled, "the process ends");
    CORELANE_ASSIGN(replaced, make_());
    return {};
  });
  if (made.ok()) done_.store(true, std::memory_order_release);
  MutexLock lock(mutex_);
  running_ = false;
  ended_.notify_all();
  const bool trims = replaced.is_large &&
                     await_end_of(replaced.session, stop_, lock.native(), ended_, *real_clock());
  lock.unlock();
  if (trims && !process_ending()) trim_heap();
}

}  // namespace corelane::drivers::virtual_npu::ort
