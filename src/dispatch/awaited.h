/// Threads that others count on.
#pragma once

#include "corelane/base/api.h"

namespace corelane::dispatch {

/// True while this thread calls the callbacks of a job that says they are brief
/// (device::Submission::brief_callbacks): another job may wait until they return, so they must not
/// wait for a job, nor take long.
CORELANE_API bool thread_is_awaited() noexcept;

/// While it lives, thread_is_awaited() is `awaited` in this thread.
class CORELANE_API AwaitedScope {
 public:
  explicit AwaitedScope(bool awaited) noexcept;
  ~AwaitedScope();
  AwaitedScope(const AwaitedScope&) = delete;
  AwaitedScope& operator=(const AwaitedScope&) = delete;

 private:
  const bool outer_;
};

}  // namespace corelane::dispatch
