/// Threads that others count on.
#pragma once

#include "corelane/base/api.h"

namespace corelane::dispatch {

/// True while this thread calls back and a job may wait for it to return: what is called must not
/// wait for a job, nor take long (device::Submission::brief_callbacks).
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
