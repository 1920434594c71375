/// Where the library itself destroys what users gave: who ends there cannot wait for the thread.
#pragma once

namespace corelane::scheduler {

/// While one lives, this thread is an instance's after a call, or the clock's: values of requests
/// may be destroyed in it, and the last handle of a pipeline with them. That pipeline is ended by
/// another thread, since this one may be what its end waits for.
class ReleaseScope {
 public:
  ReleaseScope() noexcept;
  ~ReleaseScope();
  ReleaseScope(const ReleaseScope&) = delete;
  ReleaseScope& operator=(const ReleaseScope&) = delete;

  /// Whether the calling thread is in one.
  static bool active() noexcept;
};

}  // namespace corelane::scheduler
