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
  /// The most requests at the front of the line that a decision passes over because no idle
  /// instance takes them, while it looks for one that can start.
  static constexpr std::uint32_t kMostPassed = 64;

  /// There is at least one group, and one of them has min 1 or padding.
  GatherTable(const std::vector<GatherGroup>& groups, NodeSettings settings);

  /// Whether the request cannot end in time by S(n), even alone and at once.
  bool hopeless(const Waiting& request, TimePoint now) const;
  /// Whether some call can take a request of so many items whole.
  bool fits(std::uint32_t items) const noexcept;
  /// The most items that some call can take.
  std::uint32_t largest_call() const noexcept;
  /// The items of the calls that `items` would need, for a request that is split.
  std::vector<std::uint32_t> parts_of(std::uint32_t items) const;

  /// The request was submitted, and ends before it enters the line: refused or cancelled.
  void refuse(const WaitingPtr& request, RequestState how);
  /// The request enters the line.
  void enter(const WaitingPtr& request, TimePoint now);
  /// Removes a request from the line as `how`; false, and nothing changes, if it runs or has ended.
  bool remove(const WaitingPtr& request, RequestState how);
  /// A running request is answered as `how` before its batch ends; false when it does not run.
  bool answer_early(const WaitingPtr& request, RequestState how);
  /// The call of a batch has ended. Returns the requests that run again, now back in the line; the
  /// caller gives all others that still run to answer(). `again`: the whole batch failed and may
  /// run again in parts.
  WaitingList ended(std::uint64_t batch, bool failed, bool again, TimePoint now);
  /// A running request gets its answer: kDone, kFailed or kCancelled. False when it had one.
  bool answer(const WaitingPtr& request, RequestState how);
  /// What to do at `now`. To be called after each event, and at Decision::wake.
  Decision decide(TimePoint now);

  /// While `on`, no request waits for more requests.
  void flush(bool on) noexcept { flushing_ = on; }
  /// Whether requests wait for further ones, by the last decision.
  bool holds_back() const noexcept { return wait_until_ != kNever; }
  /// Sets new rules for requests that have not begun; the groups stay.
  void change(NodeSettings settings) { settings_ = std::move(settings); }
  /// Sets the instances of a group: new ones are idle; surplus ones leave when their calls end.
  void resize(std::uint32_t group, std::uint32_t instances);
  /// Whether an instance no longer belongs to the group and is idle.
  bool retired(std::uint32_t group, std::uint32_t instance) const noexcept;

  const WaitingLine& line() const noexcept { return line_; }
  std::uint64_t running() const noexcept { return tally_.figures().running; }
  /// Items of the requests that run and have no answer.
  std::uint64_t running_items() const noexcept { return running_items_; }
  std::uint64_t running_batches() const noexcept { return batches_.size(); }
  /// Whether nothing waits and no call runs.
  bool idle() const noexcept { return line_.empty() && batches_.empty(); }
  /// The requests of the calls that run, also those that were answered early.
  WaitingList in_calls() const;
  const Tally& tally() const noexcept { return tally_; }
  const NodeSettings& settings() const noexcept { return settings_; }
  /// Expected time until a line with `items` more has room again; 0: unknown.
  Duration expected_wait() const;

 private:
  struct Instances {
    GatherGroup facts;
    std::vector<bool> busy;    ///< One for each instance that was ever there.
    std::uint32_t wanted = 0;  ///< Instances with a lower number take calls.
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
  /// The calls that `items` are divided into, by the rule of the settings.
  std::vector<PlannedCall> plan_for(std::uint32_t items, std::span<const PlanGroup> groups) const;
  std::optional<PlannedCall> first_call(std::uint64_t items) const;
  std::optional<PlannedCall> call_for(const Waiting& request) const;
  Duration cost(const PlannedCall& call) const;

  void expire(TimePoint now, Decision& decision);
  bool start_part(TimePoint now, Decision& decision);
  /// Items from the front of the line that may leave it.
  struct Leaving {
    std::uint64_t items = 0;
    Reason reason = Reason::kIdle;  ///< Why a call with fewer than largest() items leaves.
  };
  bool start_what_may_leave(TimePoint now, Decision& decision);
  /// Starts a call with some of these items, and takes them out of `leaving`.
  bool start_next(Leaving& leaving, TimePoint now, Decision& decision);
  /// Whole batches from the front, and the rest if it need not wait for more requests; if it must
  /// wait, `wait_until_` says until when.
  Leaving may_leave(TimePoint now);
  /// Until when the rest may wait for more requests, and why it leaves then.
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
  /// The same for `first`, the requests that leave first.
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
  /// The deadlines of requests without an answer, by time and id.
  SureMap<std::pair<TimePoint, std::uint64_t>, WaitingPtr> deadlines_;
  std::uint64_t last_batch_ = 0;
  std::uint64_t running_items_ = 0;
  TimePoint wait_until_ = kNever;  ///< How long the last decision waits for more requests.
  bool flushing_ = false;
};

}  // namespace corelane::scheduler
