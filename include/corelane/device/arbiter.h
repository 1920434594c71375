/// Which waiting job a core takes next: a pure function that upper floors can replace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"
#include "corelane/device/core_set.h"

namespace corelane::device {

/// One waiting job, in order of submission.
struct WaitingJob {
  std::uint64_t id = 0;
  std::uint64_t queue = 0;  ///< Queue it came through.
  std::int32_t priority = 0;
  /// What it asks for. While executables hold cores exclusively, and the jobs that wait may not all
  /// use the same cores: the part of it that this job may have, as a mask or "any of".
  CoreSet cores;
  TimePoint queued{};
  TimePoint deadline = kNever;
  Duration predicted{};  ///< Running average of its executable; 0 when unknown.
  double weight = 1;     ///< Of its queue.
  /// Core time that its queue has had, with what runs as predicted. What a queue let pass while it
  /// had no jobs counts as had, so that nobody saves up.
  Duration served{};
  /// When it was queued or, later, when the last older job of its queue was granted.
  TimePoint first_since{};
};

/// One core: free, or busy until about `predicted_free`.
struct CoreState {
  bool usable = true;  ///< False where none of the jobs may run: another executable holds it.
  bool busy = false;
  TimePoint predicted_free{};
  bool owned = false;  ///< Held exclusively: "any" of a job that may have it prefers it.
};

/// A decision: this job, on these cores.
struct Grant {
  std::size_t job = 0;          ///< Index into the waiting jobs.
  std::uint64_t core_bits = 0;  ///< Usable idle cores it gets.
};

/// Decides, also for a job that finds nobody waiting. `pick` must be pure: the same arguments give
/// the same answer. It is the one foreign function that runs under the device's lock, so it must
/// not call the device, block or log. When it throws, or grants what cannot be had, fifo_arbiter()
/// decides instead, and that is logged.
class CORELANE_API Arbiter {
 public:
  virtual ~Arbiter() = default;
  /// The next job to start now, or nullopt when none can.
  virtual std::optional<Grant> pick(std::span<const WaitingJob> waiting,
                                    std::span<const CoreState> cores, TimePoint now) const = 0;
};

/// FIFO within a priority, higher priority first. A job on k cores takes them together: it reserves
/// cores that are free until all are, but a job that a reservation does not concern may pass.
/// "Any" takes idle cores, "any of" idle ones of its own; a mask waits for all of its own, the
/// platform's choice for all usable ones.
CORELANE_API std::shared_ptr<const Arbiter> fifo_arbiter();

/// How long a job waits for one priority more, under fair_arbiter().
inline constexpr Duration kAgeingStep = std::chrono::milliseconds(50);

/// Shares by weight. Higher priority first; within one, the job whose queue has had the least core
/// time for its weight (QueueOptions::weight), and in order of submission within a queue. Cores are
/// taken and reserved as by fifo_arbiter().
///
/// Nobody starves: a job is raised by one priority for each kAgeingStep since first_since, up to
/// the highest that waits, and goes before the others of that one then. So the oldest job of a
/// queue waits at most kAgeingStep for each step of priority that it lies below others, and then
/// until what runs on its cores ends; where several queues have waited so long, for one job of
/// each.
CORELANE_API std::shared_ptr<const Arbiter> fair_arbiter();

}  // namespace corelane::device
