/// Order, lanes, threads and failures of a LanedDevice: everything between "submitted" and "done".
///
/// One mutex guards the state. An arbiter decides which waiting job gets which cores (granted);
/// granted jobs are run by any of the worker threads, by the thread that waits for them, or, on an
/// event-driven engine, by nobody: they are started and complete on the clock. Engine, callbacks,
/// fences and events are called without the lock.
///
/// Threads: workers are interchangeable, so a lane whose thread is stuck in an abandoned job or in
/// a user's callback is "replaced" by using another one. At most one idle worker spins. Callbacks
/// of jobs that end at their deadline run on a thread of their own, the notifier: the clock's
/// thread has other deadlines to keep.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "corelane/driver/lane_engine.h"
#include "device/registry/device_wrappers.h"
#include "lanes/lane_job.h"
#include "lanes/trace_ring.h"

namespace corelane::lanes {

class LanedExecutable;

class LaneScheduler final : public std::enable_shared_from_this<LaneScheduler> {
 public:
  LaneScheduler(std::size_t cores, const device::LaneOptions& options, bool event_driven);
  ~LaneScheduler();
  LaneScheduler(const LaneScheduler&) = delete;
  LaneScheduler& operator=(const LaneScheduler&) = delete;

  const std::shared_ptr<Clock>& clock() const noexcept { return clock_; }
  std::size_t cores() const noexcept { return lanes_.size(); }

  /// Takes a job whose bindings are acquired. kOutOfCores leaves it and the bindings to the caller.
  /// `caller_waits`: the caller calls wait() next, so no worker is woken for it.
  Status submit(const std::shared_ptr<LanedJob>& job, bool caller_waits);
  /// A blocking run in this thread when nothing waits and the cores are idle; nullopt when the job
  /// must be submitted instead. The bindings are acquired; released here when it ran.
  std::optional<Status> try_run_here(QueueAccount& queue, LanedBindings& bindings,
                                     const device::Submission& submission,
                                     device::JobRecord* record);

  bool wait(LanedJob& job, TimePoint until);
  bool wait_released(LanedJob& job, TimePoint until);
  bool cancel(LanedJob& job);
  void on_done(LanedJob& job, std::function<void(device::Completion&)> f);

  std::shared_ptr<QueueAccount> make_queue(const device::QueueOptions& options);
  std::size_t depth(const QueueAccount& queue) const;
  bool drain(QueueAccount& queue, TimePoint until);

  Status reset(std::uint64_t core_bits);
  void set_arbiter(std::shared_ptr<const device::Arbiter> arbiter);
  void set_event_sink(device::EventSink sink);
  void set_trace(std::size_t records_per_core);
  Result<std::vector<device::JobRecord>> read_trace() const;
  device::DeviceCounters counters() const;
  device::Health health() const;

  Status make_resident(const LanedExecutable* owner, const device::CoreSet& cores,
                       device::Residency residency);
  void release_residency(const LanedExecutable* owner);

  /// Ends the workers; no job may be left. Joins them unless one of them is the caller.
  void shutdown();

 private:
  struct Lane {
    LaneOccupant* running = nullptr;
    const LanedExecutable* owner = nullptr;  ///< Holds it exclusively.
    Duration busy{};
    TraceRing trace;
  };
  struct Worker {
    std::condition_variable wake;
    bool notified = false;
    bool finished = false;
    std::thread thread;
  };
  /// What is left to do when the lock is gone.
  struct Aftermath {
    std::vector<std::shared_ptr<LanedJob>> completed;
    std::vector<std::shared_ptr<LanedJob>> released;
    std::vector<std::shared_ptr<LanedJob>> offered;  ///< To the threads that wait for them.
    std::vector<Worker*> woken;
    std::vector<device::Event> events;
    std::vector<std::shared_ptr<LanedJob>> kept;  ///< Let go of where the rest is settled.
    bool empty() const noexcept {
      return completed.empty() && released.empty() && offered.empty() && woken.empty() &&
             events.empty();
    }
  };
  /// What became of one call of the engine.
  struct Outcome {
    Status status;
    bool crashed = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  // lane_scheduler.cpp: submission, grants, completion. "_locked": the lock is held.
  void await_fences(const std::shared_ptr<LanedJob>& job);
  void fence_signalled(const std::shared_ptr<LanedJob>& job, const Status& status);
  void enqueue_locked(const std::shared_ptr<LanedJob>& job);
  void schedule_locked(TimePoint now);
  void place_locked(const std::shared_ptr<LanedJob>& job, TimePoint now);
  void grant_locked(const std::shared_ptr<LanedJob>& job, std::uint64_t core_bits, TimePoint now);
  void start_locked(LanedJob& job, TimePoint now);
  void complete_locked(LanedJob& job, Status status, TimePoint now, bool release, Aftermath& after);
  void free_lanes_locked(const LaneOccupant& occupant, Duration ran);
  bool withdraw_locked(LanedJob& job);
  void settle(Aftermath& after);
  void wake(Aftermath& after);
  void tell(Aftermath& after);
  void complain_locked(std::string text) const;
  void complain();

  // lane_pick.cpp: the arbiter and exclusive cores.
  std::optional<device::Grant> pick_locked(TimePoint now) const;
  std::optional<device::Grant> pick_among_exclusive_locked(TimePoint now) const;
  std::optional<device::Grant> ask_arbiter_locked(const std::vector<device::WaitingJob>& waiting,
                                                  const std::vector<device::CoreState>& cores,
                                                  TimePoint now) const;
  std::uint64_t allowed_bits_locked(const LanedExecutable* executable) const;
  Status check_cores_locked(const device::CoreSet& cores, const LanedExecutable* executable) const;

  // lane_run.cpp: calling the engine.
  std::uint64_t cores_here_locked(const device::CoreSet& asked, std::uint64_t last_bits) const;
  void occupy_locked(LaneOccupant& occupant, TimePoint free_at);
  void ran_locked(const LaneOccupant& occupant, const Outcome& outcome, TimePoint now,
                  Aftermath& after);
  void trace_locked(const device::JobRecord& record);
  bool execute(const std::shared_ptr<LanedJob>& job, bool by_worker);
  Outcome run_engine(LaneOccupant& occupant, bool shadow);
  void await_release_locked(Lock& lock, const LaneOccupant& occupant, TimePoint until);
  bool finish(const std::shared_ptr<LanedJob>& job, Outcome outcome, bool by_worker);
  void drain_starts(bool about_to_wait);
  void start_engine(const std::shared_ptr<LanedJob>& job);

  // lane_failure.cpp: deadlines, resets.
  void deadline_passed(std::shared_ptr<LanedJob> job);
  void settle_elsewhere(Aftermath after);
  bool start_notifier_locked();
  void notify();
  void abandon_locked(LaneOccupant& occupant, Status status, TimePoint now, Aftermath& after);
  void report_reset_locked(std::uint64_t bits, std::string text, TimePoint now, Aftermath& after);
  void release_abandoned_locked(LanedJob& job, Aftermath& after);

  // lane_worker.cpp
  void wake_workers_locked(Aftermath& after);
  std::thread new_thread_locked(const char* name, std::function<void()> body) const;
  Worker* new_worker_locked();
  void work(Worker& self);
  bool worker_spins_locked(Lock& lock);
  bool may_spin_locked() const noexcept;
  void spin_for(const std::atomic<bool>& flag) const;
  std::shared_ptr<LanedJob> pop_ready_locked();
  bool take_ready_locked(LanedJob& job);

  const std::shared_ptr<Clock> clock_;
  const std::shared_ptr<device::FaultPoint> fault_point_;
  const Duration spin_;
  const bool event_driven_;
  const std::uint64_t all_bits_;
  const unsigned cpus_;

  mutable std::mutex mutex_;
  std::vector<Lane> lanes_;
  std::vector<device::CoreState> states_;
  std::atomic<std::uint64_t> busy_bits_{0};
  std::size_t exclusive_lanes_ = 0;
  std::shared_ptr<const device::Arbiter> arbiter_;  ///< Null: the first-in-first-out one.
  std::vector<device::WaitingJob> waiting_;         ///< Same order as waiting_jobs_.
  std::vector<std::shared_ptr<LanedJob>> waiting_jobs_;
  std::vector<std::shared_ptr<LanedJob>> blocked_;
  std::deque<std::shared_ptr<LanedJob>> ready_;   ///< Granted, not started.
  std::deque<std::shared_ptr<LanedJob>> starts_;  ///< Event-driven: to be started.
  std::vector<std::shared_ptr<LanedJob>> hung_;   ///< Event-driven: never started, by a fault.
  std::atomic<std::size_t> ready_count_{0};
  std::condition_variable abandoned_;  ///< Wakes injected hangs and delays.
  std::uint64_t last_job_ = 0;
  std::uint64_t last_queue_ = 0;
  std::size_t zombies_ = 0;  ///< Abandoned jobs the engine still has.
  device::DeviceCounters counters_;
  bool tracing_ = false;
  bool traced_ = false;
  std::shared_ptr<const device::EventSink> sink_;

  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> idle_;
  std::size_t live_workers_ = 0;
  std::size_t claimed_ = 0;  ///< Workers notified, or about to look, that will each take one job.
  bool spinning_ = false;    ///< An idle worker spins.
  unsigned spinning_waiters_ = 0;
  std::deque<Aftermath> deferred_;  ///< For the notifier.
  std::condition_variable deferred_changed_;
  std::thread notifier_;
  mutable std::vector<std::string> complaints_;  ///< For the log, once the lock is gone.
  mutable std::atomic<bool> complained_{false};
  std::atomic<bool> stop_{false};
};

}  // namespace corelane::lanes
