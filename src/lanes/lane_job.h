/// One submitted job of a LanedDevice: what it needs, where it stands, and its completion.
#pragma once

#include <atomic>
#include <bit>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process/running_cpu.h"
#include "base/reserve.h"
#include "corelane/device/completion.h"
#include "corelane/device/core_set.h"
#include "corelane/device/fence.h"
#include "corelane/device/figures.h"
#include "lanes/job_state.h"
#include "lanes/resources/queue_share.h"

namespace corelane::device {
struct Submission;
}

namespace corelane::lanes {

class LanedBindings;
class LanedExecutable;
class LanedJob;
class LaneScheduler;

/// What the scheduler knows of a queue; guarded by the scheduler's lock but for the constants.
struct QueueAccount {
  std::uint64_t id = 0;
  std::int32_t priority = 0;
  std::string name;
  std::string timeout_option;       ///< See device::QueueOptions.
  std::size_t depth = 0;            ///< Jobs that are not done.
  std::size_t draining = 0;         ///< Threads that wait for `drained`.
  std::condition_variable drained;  ///< `depth` has become 0.
  QueueShare share;
};

/// How many cores; mostly one, without the call that std::popcount() is on x86-64's baseline.
inline int count_cores(std::uint64_t bits) noexcept {
  return (bits & (bits - 1)) == 0 ? static_cast<int>(bits != 0) : std::popcount(bits);
}

/// What occupies cores: a LanedJob, or a blocking run on its caller's stack. What the engine is
/// called with does not change while it runs.
struct LaneOccupant {
  /// Not defaulted: g++ 12 would clear the whole of it first.
  LaneOccupant() noexcept {}  // NOLINT(modernize-use-equals-default)
  std::uint64_t id = 0;
  std::uint64_t core_bits = 0;
  bool pinned = false;  ///< The other cores may be somebody else's: the engine does not choose.
  TimePoint started{};
  RunningCpu cpu;  ///< Of the thread that runs it; to be read while it has its cores alone.
  LanedBindings* bound = nullptr;
  LanedJob* job = nullptr;         ///< Null for a blocking run.
  QueueAccount* origin = nullptr;  ///< Whose job it is.

 private:
  friend class LaneTable;
  JobProgress progress_;
  bool told_ = false;      ///< A line says that it runs for long.
  Duration charged_{};     ///< Core time that its queue was charged when it was granted.
  Status abandon_status_;  ///< Set when it is abandoned.
};

/// "job 7", with the name of its queue where it has one: that of the program, mostly.
std::string job_text(const LaneOccupant& job) noexcept;

/// What became of one call of the engine.
struct Outcome {
  Status status;
  bool crashed = false;  ///< The cores were reset.
  bool lost = false;     ///< The engine lost the request: the job may run on a new one.
  std::optional<device::RunSpan> span;  ///< By the engine, where it says so.
};

class LanedJob final : public device::Completion,
                       public LaneOccupant,
                       public std::enable_shared_from_this<LanedJob> {
 public:
  LanedJob(LaneScheduler& owner, std::shared_ptr<QueueAccount> account,
           std::shared_ptr<LanedBindings> tensors, const device::Submission& submission);

  bool done() const noexcept override { return done_.load(std::memory_order_acquire); }
  bool released() const noexcept override { return released_.load(std::memory_order_acquire); }
  bool wait(TimePoint until) override;
  bool run_here() override;
  bool wait_released(TimePoint until) override;
  Status status() const override;
  device::JobRecord record() const override;
  bool cancel() override;
  void on_done(std::function<void(device::Completion&)> f) override;

  bool has_deadline() const noexcept { return deadline != kNever; }
  /// done(), for a thread that spins on it.
  const std::atomic<bool>& done_flag() const noexcept { return done_; }
  LanedExecutable& executable() const noexcept;
  /// Signals the fences of a job that has become done, once, with no lock held.
  void signal_fences() noexcept;
  /// Calls the callbacks of a job whose fences are signalled, once, with no lock held.
  void call_back() noexcept;
  /// True when the two may take long. Only while they have not been called.
  bool calls_back() const noexcept {
    return !brief_callbacks && (!callbacks_.empty() || !signals.empty());
  }

  // Fixed before submission.
  LaneScheduler& scheduler;
  const std::shared_ptr<QueueAccount> queue;
  const std::shared_ptr<LanedBindings> bindings;  ///< Keeps executable, device and scheduler alive.
  const device::CoreSet cores;
  const TimePoint deadline;
  const TimePoint room_until;
  const bool from_callback;                                ///< See device::Submission.
  const bool brief_callbacks;                              ///< See device::Submission.
  const std::shared_ptr<const std::atomic<bool>> give_up;  ///< See device::Submission.
  const std::vector<std::shared_ptr<device::Fence>> waits;
  const std::vector<std::shared_ptr<device::Fence>> signals;
  /// Since when it has waited for cores alone: it was submitted, its fences were signalled.
  TimePoint ready() const noexcept { return ready_; }
  bool shadow = false;              ///< Runs on copies of user memory.
  Clock::TimerId timer = 0;         ///< Of the deadline; 0: none.
  std::condition_variable changed;  ///< Its state; waited on with the scheduler's lock.

 private:
  // The table is guarded by the scheduler's lock, and so is what only the table may change. What
  // is read after done_ no longer changes then.
  friend class LaneTable;
  device::JobRecord record_;
  Status status_;
  TimePoint ready_{};
  std::size_t pending_fences_ = 0;
  std::size_t waiters_ = 0;  ///< Threads that wait without an end, and may run it.
  SureShortList<std::function<void(device::Completion&)>> callbacks_;
  std::atomic<bool> done_{false};      ///< kAbandoned or kDone.
  std::atomic<bool> released_{false};  ///< kDone.
};

}  // namespace corelane::lanes
