/// All jobs and cores of a LanedDevice: who runs what next, and why.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/reserve.h"
#include "corelane/device/device.h"
#include "corelane/device/lease.h"
#include "lanes/job_line.h"
#include "lanes/lane_job.h"
#include "lanes/records/job_records.h"
#include "lanes/resources/device_loss.h"

namespace corelane::lanes {

class Aftermath;

/// A job without a deadline that runs for so long may hang: a line says so.
inline constexpr Duration kLongRun = std::chrono::seconds(30);

/// The numbers given last.
struct Numbers {
  std::uint64_t job = 0;
  std::uint64_t queue = 0;
};

/// Plain data without a lock, a thread, a clock or an engine: each function takes the time, changes
/// the table, and adds to `after` what must happen once its caller has released the lock. The
/// scheduler guards it with its mutex; tests drive it alone. What follows the submission of a job
/// does not fail where memory has run out: lists grow in any case, texts are left out.
///
/// A job is in the list of its state: blocked, the line, ready (granted), starts (running on an
/// event-driven engine that has not been called yet). A running job is held by the thread that
/// runs it, or by the engine's callback.
class LaneTable {
 public:
  /// `event_driven`: granted jobs need no thread, and count as running at once. `joins`: a job may
  /// run on several cores. `depth_limit`: so many jobs may wait; 0: any number. `leased`: other
  /// processes may hold cores of the device.
  LaneTable(std::size_t cores, bool event_driven, bool joins, std::size_t depth_limit = 0,
            bool leased = false)
      : event_driven_(event_driven),
        joins_(joins),
        depth_limit_(depth_limit),
        cores_(cores, leased),
        records_(cores) {}

  // Jobs, in the order of their states.

  /// Takes a job. kOutOfCores, and kBusy where it would wait and no more may, leave it as it was to
  /// the caller. `caller_waits`: its caller goes on to wait for it, and can run it.
  Status submit(const std::shared_ptr<LanedJob>& job, bool caller_waits, TimePoint now,
                Aftermath& after);
  /// The caller gives up a job that submit() refused.
  void refused(const Status& why, TimePoint now, Aftermath& after);
  /// One of the job's fences is signalled. True when it was the last: the caller copies the inputs
  /// and calls inputs_copied().
  bool fence_signalled(LanedJob& job, const Status& status, TimePoint now, Aftermath& after);
  void inputs_copied(LanedJob& job, TimePoint now, Aftermath& after);
  /// Ends a job that has not started; false when it has.
  bool cancel(LanedJob& job, TimePoint now, Aftermath& after);
  /// Ends it in the same way as failed with `why`, which is not ok.
  bool end_unstarted(LanedJob& job, Status why, TimePoint now, Aftermath& after);
  /// Ends the granted jobs that need a worker, since no worker can be started.
  void end_ready(const Status& why, TimePoint now, Aftermath& after);
  void deadline_passed(LanedJob& job, TimePoint now, Aftermath& after);
  /// Takes a granted job, and counts it as running; null when there is none.
  std::shared_ptr<LanedJob> run_next(TimePoint now);
  /// Counts this job as running; false when it is not granted.
  bool run(LanedJob& job, TimePoint now);
  /// A job of an event-driven engine to start; null when there is none.
  std::shared_ptr<LanedJob> next_start();
  /// False when the job has been abandoned before its start, or `hangs`: then the engine is not
  /// called.
  bool may_start(const std::shared_ptr<LanedJob>& job, bool hangs, Aftermath& after);
  /// The engine has a result that is to be copied out; false when it came too late. From here on
  /// the deadline comes too late.
  bool begin_copy_out(LanedJob& job);
  void returned(LanedJob& job, Outcome outcome, TimePoint now, Aftermath& after);

  // Blocking runs in their caller's thread: accepted only while no job waits.

  /// False when the run must be submitted as a job. `run.core_bits`: the cores it must get; 0: any.
  bool begin_here(LaneOccupant& run, QueueAccount& queue, const device::Submission& submission,
                  Aftermath& after);
  /// Called when the engine lost the request: true when the run may be repeated on its cores.
  bool repeat_here(LaneOccupant& run, const Outcome& outcome, TimePoint now, Aftermath& after);
  /// Releases the bindings. The status of an abandoned run replaces its outcome.
  void end_here(LaneOccupant& run, QueueAccount& queue, const device::Submission& submission,
                Outcome& outcome, TimePoint now, device::JobRecord* record, Aftermath& after);

  // Loss.

  /// Ends all jobs, and what was prepared. Does nothing when the device is lost already.
  void lose(std::string reason, TimePoint now, Aftermath& after);
  void back(TimePoint now, Aftermath& after);
  const DeviceLoss& loss() const noexcept { return loss_; }
  /// Adds a line to the device's log.
  void log(std::string line, TimePoint now, Aftermath& after) noexcept;

  // Cores.

  /// Abandons the jobs and runs on these cores.
  void reset(std::uint64_t core_bits, TimePoint now, Aftermath& after);
  const LaneCores& cores() const noexcept { return cores_; }
  /// Makes a residence on these cores and gives its number; kOutOfCores if they are taken by now.
  Result<std::uint64_t> hold_cores(const LanedExecutable* executable, std::uint64_t core_bits,
                                   device::Residency residency, TimePoint now, Aftermath& after);
  /// See LaneCores::join(). Jobs of the executable that wait may start there.
  Status join_residence(std::uint64_t residence, const LanedExecutable* executable, TimePoint now,
                        Aftermath& after);
  void forget(const LanedExecutable* executable, TimePoint, Aftermath&) {
    cores_.forget(executable);
  }
  void release_cores(std::uint64_t residence, TimePoint now, Aftermath& after);
  /// Null: the first-in-first-out arbiter. Gives back the earlier one, for the user to destroy.
  void swap_arbiter(std::shared_ptr<const device::Arbiter>& arbiter, TimePoint now,
                    Aftermath& after);

  /// Called when a cap may have room for another job.
  void caps_paid(TimePoint now, Aftermath& after) { schedule(now, after); }

  // Questions.

  /// True when jobs wait whose queue has a cap.
  bool any_capped() const noexcept { return line_.any_capped(); }
  /// When the first job of a queue that has used up its cap may start; kNever without one.
  TimePoint next_allowed(TimePoint now) const { return line_.next_allowed(now); }
  std::size_t busy_cores() const noexcept { return cores_.busy_count(); }
  bool any_ready() const noexcept { return !ready_.empty(); }
  /// How many granted jobs need a worker; offers the others to the threads that wait for them.
  std::size_t needed_workers(Aftermath& after) const;
  /// A log line for each running job without a deadline that has run for kLongRun; once for each.
  SureVector<std::string> tell_long_runs(TimePoint now);
  /// When the next such line is due for a job that runs now; kNever when none is.
  TimePoint next_long_run() const;
  /// Abandoned jobs that the engine still has.
  std::size_t abandoned_count() const noexcept { return abandoned_; }
  bool is(const LaneOccupant& occupant, JobState state) const noexcept {
    return occupant.progress_.is(state);
  }
  /// A thread that can run the job begins, or ceases, to wait for it.
  void add_waiter(LanedJob& job) noexcept { ++job.waiters_; }
  void remove_waiter(LanedJob& job) noexcept { --job.waiters_; }
  /// False when the job is done: the caller calls `f`.
  bool add_callback(LanedJob& job, std::function<void(device::Completion&)>& f);
  std::uint64_t new_queue() noexcept { return ++last_.queue; }
  device::DeviceCounters counters() const;
  /// By core, for other processes that watch; with the programs that reside there.
  std::vector<device::LeaseFigures> lease_figures() const;
  std::vector<device::Holding> holdings() const;
  JobRecords& records() noexcept { return records_; }
  const JobRecords& records() const noexcept { return records_; }

 private:
  /// If jobs do not run on several cores, the platform's choice is one core.
  bool takes_all(const device::CoreSet& asked) const noexcept {
    return joins_ && asked.kind() == device::CoreSet::Kind::kPlatform;
  }
  device::CoreSet as_asked(const device::CoreSet& cores) const noexcept {
    const bool one = !joins_ && cores.kind() == device::CoreSet::Kind::kPlatform;
    return one ? device::CoreSet::any() : cores;
  }
  device::WaitingJob facts_of(const LanedJob& job) const;
  std::uint64_t cores_now(const device::CoreSet& asked, const LanedBindings& bindings) const;
  /// Jobs that wait, for fences or cores.
  std::size_t waiting_count() const noexcept { return blocked_.size() + copying_ + line_.size(); }
  bool full() const noexcept { return depth_limit_ != 0 && waiting_count() >= depth_limit_; }
  bool over_limit() const noexcept { return depth_limit_ != 0 && waiting_count() > depth_limit_; }
  Status refuse_full() const;
  bool place(const std::shared_ptr<LanedJob>& job, TimePoint now, Aftermath& after);
  void schedule(TimePoint now, Aftermath& after);
  void joins(QueueAccount& queue) noexcept;
  void occupy(LaneOccupant& occupant, TimePoint now, Duration expected);
  void vacate(const LaneOccupant& occupant, Duration ran);
  void grant(const std::shared_ptr<LanedJob>& job, std::uint64_t core_bits, TimePoint now);
  void start(LanedJob& job, TimePoint now);
  void leave_cores(const LaneOccupant& occupant, const Outcome& outcome, TimePoint now,
                   Aftermath& after);
  void complete(LanedJob& job, Status status, TimePoint now, Aftermath& after);
  void count_completed(QueueAccount& queue, const Status& status);
  static bool may_run_for_long(const LaneOccupant& run);
  bool withdraw(LanedJob& job);
  void time_out(LanedJob& job, TimePoint now, Aftermath& after);
  void abandon(LaneOccupant& occupant, Status status, TimePoint now, Aftermath& after);
  void release(LanedJob& job, Aftermath& after);
  void report_reset(std::uint64_t core_bits, std::string_view text, TimePoint now,
                    Aftermath& after);

  const bool event_driven_;
  const bool joins_;
  const std::size_t depth_limit_;
  LaneCores cores_;
  JobLine line_;
  SureVector<std::shared_ptr<LanedJob>> blocked_;
  std::size_t copying_ = 0;  ///< Jobs whose inputs are being copied.
  SureDeque<std::shared_ptr<LanedJob>> ready_;
  SureDeque<std::shared_ptr<LanedJob>> starts_;
  SureVector<std::shared_ptr<LanedJob>> hung_;  ///< Event-driven: a fault keeps the engine off.
  std::size_t abandoned_ = 0;
  DeviceLoss loss_;
  double level_ = 0;  ///< The highest of the queues that were served: see QueueShare::join().
  Numbers last_;
  device::DeviceCounters counters_;
  JobRecords records_;
};

}  // namespace corelane::lanes
