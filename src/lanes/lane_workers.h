/// The threads of a LanedDevice that run granted jobs.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <thread>

#include "base/reserve.h"
#include "base/sync.h"
#include "corelane/base/clock.h"

namespace corelane::lanes {

class Aftermath;

/// Workers are interchangeable: a core whose job is stuck, or whose worker is in a user's callback,
/// is served by another worker. Guarded by the scheduler's lock, as the jobs are.
///
/// Who runs a granted job: the thread that waits for it, or a worker. A worker is *coming* when it
/// will look for a granted job before it sleeps or ends: it has been woken or started, it spins, or
/// it returns from a job whose callbacks are none or brief, or has said in one that it will. As
/// long as at least as many workers are coming as there are jobs that need one, no job is
/// forgotten; call() restores that after each change.
class LaneWorkers {
 public:
  struct Worker {
    std::condition_variable wake;
    bool called = false;  ///< Has been woken, and has not noticed yet.
    bool ended = true;    ///< Has no thread.
    std::thread thread;
  };
  /// Starts the thread of a worker; one that is not joinable where the system gives none.
  using Start = std::function<std::thread(Worker&, Aftermath&)>;

  LaneWorkers(std::size_t cores, const Clock& clock, Duration spin, Start start);

  /// Wakes or starts workers until `needed` are coming, as far as the system gives threads. Where
  /// it gives none, a job waits for a worker that comes back; see none().
  void call(std::size_t needed, Aftermath& after);
  /// A worker that was coming looks for a job now.
  void looks() noexcept { --coming_; }
  /// A worker will look for a job next.
  void comes() noexcept { ++coming_; }

  /// True when a worker that finds no job is to end: there are more than the cores need, each one
  /// for its job and one that is in a callback. `abandoned` jobs each keep a worker.
  bool surplus(std::size_t abandoned) const noexcept {
    return stop_ || live_ > 2 * cores_ + abandoned;
  }
  /// Sleeps until called or stopped; then the worker looks for a job.
  void sleep(Worker& self, MutexLock& lock);
  void ended(Worker& self) noexcept;

  /// True when none is there: a granted job that needs one would wait forever.
  bool none() const noexcept { return live_ == 0; }

  /// True when a thread may spin without taking a CPU from one that works.
  bool may_spin(std::size_t busy_cores) const noexcept;
  /// At most one worker spins. False: this one must not.
  bool begin_spin(std::size_t busy_cores) noexcept;
  void end_spin() noexcept;
  /// Whether the worker that spins leaves the next job to its submitter for a moment: the last one
  /// came to wait for its job, and would have run it.
  bool gives_way() const noexcept { return gives_way_; }
  void give_way(bool gives) noexcept { gives_way_ = gives; }
  /// For threads that wait for a job.
  void waiter_spins(bool begins) noexcept { begins ? ++spinning_waiters_ : --spinning_waiters_; }

  /// Lets the workers end; the caller joins or detaches their threads without the lock.
  SureVector<std::thread> stop();

 private:
  Worker* start(Aftermath& after) noexcept;

  const std::size_t cores_;
  const std::size_t cpus_;
  const bool spins_;
  const Start start_;
  SureVector<std::unique_ptr<Worker>> workers_;
  SureVector<Worker*> idle_;
  std::size_t live_ = 0;
  std::size_t coming_ = 0;
  bool worker_spins_ = false;
  bool gives_way_ = false;
  unsigned spinning_waiters_ = 0;
  bool stop_ = false;
};

}  // namespace corelane::lanes
