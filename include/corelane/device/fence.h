/// A fence: becomes signalled once, with a Status. Order between jobs is expressed by fences in
/// wait and signal lists, never by luck.
#pragma once

#include <functional>
#include <memory>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"

namespace corelane::device {

/// Shared by shared_ptr; all methods from any thread.
class CORELANE_API Fence {
 public:
  /// Not signalled. `clock` is the one that wait() uses; not null.
  explicit Fence(std::shared_ptr<Clock> clock = real_clock());
  ~Fence();
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;

  /// Signals; the first call decides, later ones are ignored. Callbacks run in this thread.
  void signal(Status status = {});
  /// True once signal() was called; stays true.
  bool signalled() const noexcept;
  /// What it was signalled with; ok while it is not.
  Status status() const;
  /// Waits until signalled or `until`; false when the time came first.
  bool wait(TimePoint until = kNever) const;
  /// Calls `f` once when signalled (at once if it already is), in the signalling thread, with no
  /// lock held. An exception it throws is logged and dropped. Imported fences have one such thread
  /// in a process: `f` returns soon there, and does not wait for a fence.
  void on_signal(std::function<void(const Status&)> f);
  /// A new descriptor (eventfd) that polls readable when the fence is signalled; the caller closes
  /// it. Until it is signalled, the fence keeps a duplicate of each descriptor: a caller that waits
  /// often should export once. kIo when the system gives no descriptor.
  Result<int> export_fd();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A fence that is signalled when `fd` polls readable, as failed (kIo) when it only hangs up or
/// fails; the descriptor is duplicated, not consumed, and stays the caller's. It is watched while
/// the fence is held and not signalled. kInvalidArgument for a descriptor that is not open or
/// cannot be polled, kIo when the system gives none to watch it with.
CORELANE_API Result<std::shared_ptr<Fence>> import_fence_fd(int fd);

}  // namespace corelane::device
