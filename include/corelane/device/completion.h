/// What a submitted job leads to: a result, and the release of its memory.
#pragma once

#include <functional>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/device/figures.h"

namespace corelane::device {

/// All methods from any thread. Dropping the last reference does not cancel the job.
///
/// Two events: *done* (there is a result) and *released* (the device no longer touches the memory
/// of the bindings). They coincide but for an abandoned job, whose memory is released later, when
/// the engine returns.
class CORELANE_API Completion {
 public:
  virtual ~Completion() = default;
  /// True once there is a result; stays true. Does not wait.
  virtual bool done() const noexcept = 0;
  /// True once the device no longer touches the memory of the bindings; stays true. Does not wait.
  virtual bool released() const noexcept = 0;
  /// Waits for *done*; false when `until` came first (the job goes on). Without an end, the calling
  /// thread may be used to run the job when its core is idle and it has no deadline.
  virtual bool wait(TimePoint until = kNever) = 0;
  /// Runs the job in the calling thread, where it has its cores, no deadline, and no thread has
  /// begun to run it; then it is done. False where it does not run it. Does not wait.
  virtual bool run_here() { return false; }
  /// Waits for *released* (and so for *done*); false when `until` came first.
  virtual bool wait_released(TimePoint until = kNever) = 0;
  /// The result; kWrongState while not done.
  virtual Status status() const = 0;
  /// Stamps and core; zeros while not done.
  virtual JobRecord record() const = 0;
  /// Removes a job that has not started (it completes with kCancelled): true. False when it has.
  virtual bool cancel() = 0;
  /// Calls `f` once when done (at once if it is), in the thread that completes the job or one that
  /// the device keeps for that, with no lock held. It may call any function; an exception is logged
  /// and dropped. A waiter may return before `f` ran.
  virtual void on_done(std::function<void(Completion&)> f) = 0;
};

}  // namespace corelane::device
