/// The decisions of one node: when a batch leaves and why, which instance takes it, what is
/// dropped. A table without locks, threads or a clock: what happened goes in with its time,
/// decisions come out. The scheduler and the simulator run the same one. What follows the entry of
/// a request does not fail where memory has run out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "corelane/base/clock.h"
#include "corelane/scheduler/statistics.h"
#include "scheduler/config/settings.h"
#include "scheduler/gather/tally.h"
#include "scheduler/gather/waiting_line.h"
#include "scheduler/plan/arrivals.h"
#include "scheduler/plan/composite.h"
#include "scheduler/plan/cost_table.h"

namespace corelane::scheduler {

/// A group as its instances report it.
struct GatherGroup {
  Range range;
  std::uint32_t instances = 1;
  bool padding = false;
};

/// A call that begins now.
struct Start {
  std::uint64_t batch = 0;
  std::uint32_t group = 0;
  std::uint32_t instance = 0;
  std::uint32_t items = 0;
  std::uint32_t padding = 0;
  Reason reason = Reason::kIdle;
  WaitingList requests;
};

/// What to do now.
struct Decision {
  SureVector<Start> starts;
  /// Requests that have ended as kExpired: those of `expired` waited, those of `late` ran.
  WaitingList expired;
  WaitingList late;
  /// When to decide again though nothing happened; kNever: not.
  TimePoint wake = kNever;
};

class GatherTable {
 public:
  /// A decision looks for requests that idle instances take behind at most so many that they do
  /// not take.
  static constexpr std::uint32_t kMostPassed = 64;

  /// There is at least one group, and one of them has min 1 or padding.
  GatherTable(const std::vector<GatherGroup>& groups, NodeSettings settings);

  /// Whether S(n) says that it cannot end in time, even alone and at once.
  bool hopeless(const Waiting& request, TimePoint now) const;
  /// Whether some call can take it whole.
  bool fits(std::uint32_t items) const noexcept;
  /// The most items that some call can take.
  std::uint32_t largest_call() const noexcept;
  /// The items of the calls that `items` would need, for a request that is split.
  std::vector<std::uint32_t> parts_of(std::uint32_t items) const;

  /// It has been submitted, and ends before it enters: refused or cancelled.
  void refuse(const WaitingPtr& request, RequestState how);
  /// It enters the line.
  void enter(const WaitingPtr& request, TimePoint now);
  /// Removes it from the line as `how`; false, and nothing changes, when it runs or has ended.
  bool remove(const WaitingPtr& request, RequestState how);
  /// A running request is answered as `how` before its batch ends; false when it does not run.
  bool answer_early(const WaitingPtr& request, RequestState how);
  /// Its call has ended. Those that run again go back into the line and are returned: all others
  /// that still run are to be given to answer(). `again`: the whole batch failed and may run again
  /// in parts.
  WaitingList ended(std::uint64_t batch, bool failed, bool again, TimePoint now);
  /// A running request has its answer: kDone, kFailed or kCancelled. False when it had one.
  bool answer(const WaitingPtr& request, RequestState how);
  /// What to do at `now`. To be called after each event, and at Decision::wake.
  Decision decide(TimePoint now);

  /// While it is on, nothing waits for more requests.
  void flush(bool on) noexcept { flushing_ = on; }
  /// Whether requests wait for more ones, by the last decision.
  bool holds_back() const noexcept { return wait_until_ != kNever; }
  /// New rules for what has not begun; the groups stay.
  void change(NodeSettings settings) { settings_ = std::move(settings); }
  /// Instances of a group: new ones are idle; those that are too many go when they end.
  void resize(std::uint32_t group, std::uint32_t instances);
  /// Whether an instance does not belong to it any more and is idle.
  bool retired(std::uint32_t group, std::uint32_t instance) const noexcept;

  const WaitingLine& line() const noexcept { return line_; }
  std::uint64_t running() const noexcept { return tally_.figures().running; }
  /// Items of the requests that run and have no answer.
  std::uint64_t running_items() const noexcept { return running_items_; }
  std::uint64_t running_batches() const noexcept { return batches_.size(); }
  /// Whether nothing waits and no call runs.
  bool idle() const noexcept { return line_.empty() && batches_.empty(); }
  /// Requests of the calls that run, those that were answered included.
  WaitingList in_calls() const;
  const Tally& tally() const noexcept { return tally_; }
  const NodeSettings& settings() const noexcept { return settings_; }
  /// Expected time until a line with `items` more has room again; 0: unknown.
  Duration expected_wait() const;

 private:
  struct Instances {
    GatherGroup facts;
    std::vector<bool> busy;    ///< One for each instance that was ever there.
    std::uint32_t wanted = 0;  ///< Those below take calls.
    std::uint32_t idle = 0;
  };
  struct Batch {
    Start start;
    TimePoint began{};
    Duration predicted{};
  };

  static BatchRecord record_of(const Batch& ended, bool failed, TimePoint now);
  Range range_of(const Instances& group) const noexcept;
  std::uint32_t largest() const noexcept;
  SureVector<PlanGroup> available() const;
  /// By the rule of the settings.
  std::vector<PlannedCall> plan_for(std::uint32_t items, std::span<const PlanGroup> groups) const;
  std::optional<PlannedCall> first_call(std::uint64_t items) const;
  std::optional<PlannedCall> call_for(const Waiting& request) const;
  Duration cost(const PlannedCall& call) const;

  void expire(TimePoint now, Decision& decision);
  bool start_part(TimePoint now, Decision& decision);
  /// Items from the front of the line that may leave it.
  struct Leaving {
    std::uint64_t items = 0;
    Reason reason = Reason::kIdle;  ///< Of a call of less than largest() of them.
  };
  bool start_what_may_leave(TimePoint now, Decision& decision);
  /// A call of some of these items, which become fewer by it.
  bool start_next(Leaving& leaving, TimePoint now, Decision& decision);
  /// Whole batches from the front, and the rest where it need not wait for more; else `wait_until_`
  /// is when it leaves.
  Leaving may_leave(TimePoint now);
  /// Until when the rest may wait for more, and why it leaves then.
  struct Patience {
    TimePoint until{};
    Reason reason = Reason::kTimeout;
  };
  Patience patience_of(std::uint64_t rest) const;
  bool pays_to_wait_for_next(std::uint64_t items, TimePoint now, TimePoint timeout);
  std::uint32_t largest_idle() const noexcept;
  /// A call and its requests.
  using Choice = std::pair<PlannedCall, WaitingList>;
  /// The request at `front` and those after it, of which `items` may leave; nothing where no idle
  /// instance takes the first one.
  std::optional<Choice> choose_from(WaitingLine::Place front, std::uint64_t items) const;
  /// The same of `first`, the requests that leave first.
  std::optional<Choice> choose(const WaitingList& first, std::uint64_t items) const;
  /// Drops the requests of the choice that would be late: true when the choice is to be made again.
  bool drop_late(PlannedCall& call, WaitingList& chosen, Reason& reason, TimePoint now,
                 Decision& decision);
  bool make_smaller(PlannedCall& call, WaitingList& chosen, TimePoint now) const;
  void begin(const PlannedCall& call, WaitingList chosen, Reason reason, TimePoint now,
             Decision& decision);
  void runs(Waiting& request, TimePoint now);
  void stops(const Waiting& request) noexcept;
  void leave_line(const WaitingPtr& request);
  void forget_deadline(const Waiting& request);
  TimePoint next_wake() const;

  std::vector<Instances> groups_;
  NodeSettings settings_;
  WaitingLine line_;
  Arrivals arrivals_;
  CostTable costs_;
  Tally tally_;
  SureMap<std::uint64_t, Batch> batches_;
  /// Of requests without an answer, by time and id.
  SureMap<std::pair<TimePoint, std::uint64_t>, WaitingPtr> deadlines_;
  std::uint64_t last_batch_ = 0;
  std::uint64_t running_items_ = 0;
  TimePoint wait_until_ = kNever;  ///< Of the last decision: for more requests.
  bool flushing_ = false;
};

}  // namespace corelane::scheduler
