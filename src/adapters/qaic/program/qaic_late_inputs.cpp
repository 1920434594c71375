#include "adapters/qaic/program/qaic_late_inputs.h"

namespace corelane::qaic {

void LateInputs::put() noexcept {
  Puts done;  // May hold the last references: they go after the lock.
  const MutexLock lock(mutex_);
  for (const Put& one : puts_) one.to->put(one.from);
  done.swap(puts_);
}

/// Waits for a put() that runs.
void LateInputs::drop() noexcept {
  Puts dropped;
  const MutexLock lock(mutex_);
  dropped.swap(puts_);
}

}  // namespace corelane::qaic
