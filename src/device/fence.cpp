#include "corelane/device/fence.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cerrno>
#include <vector>

#include "base/guard.h"
#include "base/process/errno_text.h"
#include "base/process/unique_fd.h"
#include "base/reserve.h"
#include "base/sync.h"
#include "device/fence_order.h"

namespace corelane::device {

/// `signalled` is set under the mutex and read without it: once true, status and lists never
/// change.
struct Fence::Impl {
  std::shared_ptr<Clock> clock;
  Mutex mutex{LockRank::kFence};
  std::condition_variable changed;
  std::atomic<bool> signalled{false};
  Status status CORELANE_GUARDED_BY(mutex);
  SureVector<std::function<void(const Status&)>> callbacks CORELANE_GUARDED_BY(mutex);
  /// Duplicates of exported descriptors, to make readable.
  std::vector<UniqueFd> exported CORELANE_GUARDED_BY(mutex);
};

Fence::Fence(std::shared_ptr<Clock> clock) : impl_(std::make_unique<Impl>()) {
  impl_->clock = std::move(clock);
}

Fence::~Fence() = default;

void Fence::signal(Status status) {
  SureVector<std::function<void(const Status&)>> callbacks;
  std::vector<UniqueFd> exported;
  Status result;
  {
    const MutexLock lock(impl_->mutex);
    if (impl_->signalled.load(std::memory_order_relaxed)) return;
    impl_->status = std::move(status);
    // A copy for the callbacks: the fence may be destroyed by a waiter before they run.
    if (!impl_->callbacks.empty()) result = impl_->status;
    impl_->signalled.store(true, std::memory_order_release);
    callbacks.swap(impl_->callbacks);
    exported.swap(impl_->exported);
    // Under the lock: a waiter that returns may destroy the fence.
    impl_->changed.notify_all();
  }
  before_descriptor_write();
  for (const UniqueFd& fd : exported) eventfd_write(fd.get(), 1);
  if (callbacks.empty()) return;
  for (const auto& f : callbacks) run_callback("device", "a fence's callback", f, result);
}

bool Fence::signalled() const noexcept { return impl_->signalled.load(std::memory_order_acquire); }

Status Fence::status() const {
  const MutexLock lock(impl_->mutex);
  return impl_->status;
}

/// Never without the lock: who returns may destroy the fence, so signal() must have left it.
bool Fence::wait(TimePoint until) const {
  MutexLock lock(impl_->mutex);
  while (!signalled())
    if (!impl_->clock->wait_until(lock.native(), impl_->changed, until)) return signalled();
  return true;
}

void Fence::on_signal(std::function<void(const Status&)> f) {
  {
    const MutexLock lock(impl_->mutex);
    if (!impl_->signalled.load(std::memory_order_relaxed)) {
      impl_->callbacks.push_back(std::move(f));
      return;
    }
  }
  run_callback("device", "a fence's callback", f, status());
}

Result<int> Fence::export_fd() {
  UniqueFd theirs(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  // The fence writes to a duplicate: the caller may close its own at any time.
  UniqueFd ours(theirs ? fcntl(theirs.get(), F_DUPFD_CLOEXEC, 0) : -1);
  if (!ours)
    return error(Code::kIo, "the system gives no descriptor for a fence: {} (see ulimit -n)",
                 errno_text());
  const MutexLock lock(impl_->mutex);
  if (!impl_->signalled.load(std::memory_order_relaxed)) {
    impl_->exported.push_back(std::move(ours));
  } else {
    before_descriptor_write();
    eventfd_write(ours.get(), 1);
  }
  return theirs.release();
}

}  // namespace corelane::device
