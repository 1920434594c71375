/// Order, cores, threads and failures of a LanedDevice: everything between "submitted" and "done".
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/sync.h"
#include "dispatch/callback_thread.h"
#include "dispatch/delivery_thread.h"
#include "lanes/aftermath.h"
#include "lanes/lane_table.h"
#include "lanes/lane_workers.h"

namespace corelane::device {
class FaultPoint;
struct LaneOptions;
}  // namespace corelane::device

namespace corelane::lanes {

class LanedBindings;

/// The lock around the LaneTable, and what needs none: the engine's calls, copies, waiting, and
/// what follows from a change. All functions from any thread.
///
/// A granted job is run by a worker or by the thread that waits for it; on an event-driven engine
/// it is started and completes on the clock. Each change of the table goes: lock, change, call
/// workers, unlock, settle. Under the lock only the clock and a user's arbiter are called; engine,
/// callbacks, fences, events and the log are not.
///
/// A submission may fail for want of memory. What comes after it cannot: a start that fails ends
/// its job with kOutOfMemory.
///
/// Callbacks of jobs that end at their deadline run in a thread of their own, the notifier: the
/// clock's thread has other deadlines to keep. So do those that the thread which signals imported
/// fences would call.
class LaneScheduler final : public std::enable_shared_from_this<LaneScheduler> {
 public:
  /// `on_cpus`: the engine computes in the threads that run jobs.
  LaneScheduler(std::size_t cores, const device::LaneOptions& options, bool event_driven,
                bool joins, bool on_cpus);

  const std::shared_ptr<Clock>& clock() const noexcept { return clock_; }

  /// Takes a job whose bindings are acquired and, unless it waits for fences, copied. Waits for
  /// room as long as the job says. A failure leaves it and the bindings to the caller.
  /// `caller_waits`: the caller calls wait() next, so no worker is woken for it.
  Status submit(const std::shared_ptr<LanedJob>& job, bool caller_waits);
  /// A blocking run in this thread when nothing waits, the cores are idle and the engine is not
  /// event-driven; nullopt when the job must be submitted instead. `only_brief`: also
  /// when the run is not brief, or faults are injected. The bindings are acquired; released here
  /// when it ran.
  std::optional<Status> try_run_here(QueueAccount& queue, LanedBindings& bindings,
                                     const device::Submission& submission, bool only_brief,
                                     device::JobRecord* record);

  bool wait(LanedJob& job, TimePoint until);
  /// See device::Completion::run_here.
  bool run_here(LanedJob& job);
  bool wait_released(LanedJob& job, TimePoint until);
  bool cancel(LanedJob& job);
  /// False when the job is done: the caller calls `f`.
  bool add_callback(LanedJob& job, std::function<void(device::Completion&)>& f);

  std::shared_ptr<QueueAccount> make_queue(const device::QueueOptions& options);
  std::size_t depth(const QueueAccount& queue) const;
  bool drain(QueueAccount& queue, TimePoint until);

  void reset(std::uint64_t core_bits);
  /// See LaneTable.
  Result<std::uint64_t> generation() const;
  std::shared_ptr<const Generation> current_generation() const;
  void log(std::string line);
  Status set_arbiter(std::shared_ptr<const device::Arbiter> arbiter);
  void add_observer(std::shared_ptr<ObserverRing> observer);
  /// Delivers what the observer has recorded; afterwards it gets no more records.
  void remove_observer(const std::shared_ptr<ObserverRing>& observer);
  bool flush(const std::shared_ptr<ObserverRing>& observer, TimePoint until);
  Status set_trace(std::size_t records_per_core);
  Result<std::vector<device::JobRecord>> read_trace() const;
  device::DeviceCounters counters() const;
  std::vector<device::LeaseFigures> lease_figures() const;
  std::vector<device::Holding> holdings() const;
  device::Health health() const;

  /// See LaneCores::choose(). Holds nothing.
  Result<std::uint64_t> choose_cores(const LanedExecutable* executable,
                                     const device::CoreSet& cores, device::Residency residency,
                                     std::uint64_t besides) const;
  /// See LaneTable.
  Result<std::uint64_t> hold_cores(const LanedExecutable* executable, std::uint64_t core_bits,
                                   device::Residency residency);
  Status join_residence(std::uint64_t residence, const LanedExecutable* executable);
  bool resides(std::uint64_t residence, const LanedExecutable* executable) const;
  void forget(const LanedExecutable* executable);
  void release_cores(std::uint64_t residence);

  /// Ends the workers; no job may be left. Joins them unless one of them is the caller.
  void shutdown();

 private:
  // lane_scheduler.cpp: the table's changes, and what follows from them.
  template <class R, class... Parameters, class... Arguments>
  R change(R (LaneTable::*f)(Parameters...), Arguments&&... arguments);
  Status take(const std::shared_ptr<LanedJob>& job, bool caller_waits);
  void call_workers(Aftermath& after) noexcept CORELANE_REQUIRES(mutex_);
  void note_ready() CORELANE_REQUIRES(mutex_);
  /// A job has started. One test on the way of each run: while a timer is set, jobs that start are
  /// due after it, and it looks for the next one itself.
  void watch(const LaneOccupant& started) CORELANE_REQUIRES(mutex_) {
    if (!watching_) [[unlikely]]
      watch_until(started.started + kLongRun);
  }
  void watch_caps() noexcept CORELANE_REQUIRES(mutex_);
  void caps_paid();
  void wait_for_fences(const std::shared_ptr<LanedJob>& job) noexcept;
  void fence_signalled(const std::shared_ptr<LanedJob>& job, const Status& status) noexcept;
  void deadline_passed(std::shared_ptr<LanedJob> job) noexcept;
  void lose(const LaneOccupant& struck) noexcept;
  void settle(Aftermath& after) noexcept;
  void settle_elsewhere(Aftermath after) noexcept;
  void wake(Aftermath& after) noexcept;
  void report(Aftermath& after) noexcept;
  static void call_back(const AftermathLists::CompletedJobs& completed) noexcept;
  std::thread start_worker(LaneWorkers::Worker& worker, Aftermath& after);

  // lane_run.cpp: the threads that run jobs, and the calls of the engine.
  /// This thread is about to run it. Workers that are woken look, under the lock, where others run,
  /// to find a CPU of their own: while all CPUs work, the kernel puts a thread that wakes up in the
  /// line of any of them, and balances the lines some milliseconds later only.
  void note_cpu(LaneOccupant& run) const noexcept {
    if (finds_cpus_) run.cpu = RunningCpu::of_this_thread();
  }
  /// This thread has taken it from the table, and runs it next.
  void begins(LanedJob& job) CORELANE_REQUIRES(mutex_) {
    note_cpu(job);
    watch(job);
    note_ready();
  }
  /// In a callback of a job that a worker has run: the worker looks for a job when that returns.
  void promise_worker() noexcept CORELANE_REQUIRES(mutex_);
  bool spin_for_job(bool gives_way) noexcept;
  void work(LaneWorkers::Worker& self) noexcept;
  Outcome run_engine(LaneOccupant& occupant, bool shadow) noexcept;
  void await_abandoned(const LaneOccupant& occupant, TimePoint until);
  bool execute(const std::shared_ptr<LanedJob>& job, bool by_worker) noexcept;
  bool returned(const std::shared_ptr<LanedJob>& job, Outcome outcome, bool by_worker) noexcept;
  void drain_starts(bool about_to_wait) noexcept;
  void start_engine(const std::shared_ptr<LanedJob>& job) noexcept;
  Status start_bindings(const std::shared_ptr<LanedJob>& job, Duration slow);
  void returned_late(const std::shared_ptr<LanedJob>& job, Outcome outcome, Duration slow) noexcept;

  // records/lane_reports.cpp: observers, figures, and runs that take long.
  void watch_until(TimePoint due) noexcept CORELANE_REQUIRES(mutex_);
  void tell_long_runs();

  const std::shared_ptr<Clock> clock_;
  const std::shared_ptr<device::FaultPoint> fault_point_;
  const Duration spin_;
  const bool event_driven_;
  const bool finds_cpus_;
  const std::size_t cores_;
  const std::shared_ptr<dispatch::CallbackThread> notifier_;
  const std::shared_ptr<dispatch::DeliveryThread> observing_;  ///< Calls observers.

  mutable Mutex mutex_{LockRank::kLaneScheduler};
  LaneTable table_ CORELANE_GUARDED_BY(mutex_);
  LaneWorkers workers_ CORELANE_GUARDED_BY(mutex_);
  bool watching_ CORELANE_GUARDED_BY(mutex_) =
      false;  ///< A timer looks for jobs that run for long.
  Clock::TimerId watch_timer_ CORELANE_GUARDED_BY(mutex_) = 0;
  TimePoint cap_due_ CORELANE_GUARDED_BY(mutex_) = kNever;  ///< Of the timer for caps.
  std::condition_variable abandoned_;  ///< A job was: injected hangs and delays end.
  std::condition_variable room_;       ///< The line or the cores have changed.
  std::size_t want_room_ CORELANE_GUARDED_BY(mutex_) = 0;  ///< Submissions that wait for room.
  /// A job is ready, or the workers are to end: the spinning worker looks without the lock, all the
  /// time, so no other member is on its cache line.
  alignas(64) std::atomic<bool> ready_{false};
};

}  // namespace corelane::lanes
