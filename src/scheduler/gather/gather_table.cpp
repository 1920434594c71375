#include "scheduler/gather/gather_table.h"

#include <algorithm>
#include <new>

#include "base/later.h"

namespace corelane::scheduler {
namespace {

std::uint32_t items_of(const WaitingList& requests) noexcept {
  std::uint32_t sum = 0;
  for (const WaitingPtr& request : requests) sum += request->items;
  return sum;
}

std::uint32_t largest_of(const std::vector<GatherGroup>& groups) noexcept {
  std::uint32_t largest = 1;
  for (const GatherGroup& group : groups) largest = std::max(largest, group.range.max);
  return largest;
}

/// What a group without instances of its own would take.
SureVector<PlanGroup> all_of(SureVector<PlanGroup> groups) {
  for (PlanGroup& group : groups) group.available = true;
  return groups;
}

/// Whether a call of this group can take a request whole. max_batch is for what is gathered: a
/// request that has entered can always run, whatever is set later.
bool takes_alone(const GatherGroup& group, std::uint32_t items) noexcept {
  return group.range.holds(items) || (group.padding && items < group.range.min);
}

}  // namespace

GatherTable::GatherTable(const std::vector<GatherGroup>& groups, NodeSettings settings)
    : settings_(std::move(settings)),
      costs_(groups.size()),
      tally_(largest_of(groups), settings_.records) {
  for (const GatherGroup& group : groups) {
    const std::uint32_t count = group.instances;
    groups_.push_back({group, std::vector<bool>(count, false), count, count});
  }
}

Range GatherTable::range_of(const Instances& group) const noexcept {
  Range range = group.facts.range;
  if (settings_.max_batch != 0)
    range.max = std::max(range.min, std::min(range.max, settings_.max_batch));
  return range;
}

std::uint32_t GatherTable::largest() const noexcept {
  std::uint32_t largest = 1;
  for (const Instances& group : groups_) largest = std::max(largest, range_of(group).max);
  return largest;
}

SureVector<PlanGroup> GatherTable::available() const {
  SureVector<PlanGroup> groups;
  for (const Instances& group : groups_)
    groups.push_back({range_of(group), group.facts.padding, group.idle != 0});
  return groups;
}

Duration GatherTable::cost(const PlannedCall& call) const {
  return costs_.of(call.group, call.items + call.padding);
}

std::vector<PlannedCall> GatherTable::plan_for(std::uint32_t items,
                                               std::span<const PlanGroup> groups) const {
  if (settings_.plan == Plan::kGreedy) return plan_greedy(items, groups);
  return plan_by_cost(items, groups, [this](std::uint32_t group, std::uint32_t size) {
    return costs_.of(group, size);
  });
}

/// The first call of the plan for so many items on what is idle now.
std::optional<PlannedCall> GatherTable::first_call(std::uint64_t items) const {
  const auto some = static_cast<std::uint32_t>(std::min<std::uint64_t>(items, largest()));
  const SureVector<PlanGroup> groups = available();
  if (settings_.plan == Plan::kGreedy) return greedy_call(some, groups);
  try {
    const std::vector<PlannedCall> calls = plan_for(some, groups);
    if (calls.empty()) return std::nullopt;
    return calls.front();
  } catch (const std::bad_alloc&) {
    return greedy_call(some, groups);  // Which takes none.
  }
}

/// A call on an idle instance for this request alone.
std::optional<PlannedCall> GatherTable::call_for(const Waiting& request) const {
  std::optional<PlannedCall> found;
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    const GatherGroup& facts = groups_[g].facts;
    if (groups_[g].idle == 0 || !takes_alone(facts, request.items)) continue;
    const std::uint32_t min = facts.range.min;
    const PlannedCall call{g, request.items, min > request.items ? min - request.items : 0};
    if (!found || cost(call) < cost(*found)) found = call;
  }
  return found;
}

std::uint32_t GatherTable::largest_call() const noexcept {
  std::uint32_t largest = 1;
  for (const Instances& group : groups_) largest = std::max(largest, group.facts.range.max);
  return largest;
}

bool GatherTable::fits(std::uint32_t items) const noexcept {
  return std::ranges::any_of(
      groups_, [&](const Instances& group) { return takes_alone(group.facts, items); });
}

std::vector<std::uint32_t> GatherTable::parts_of(std::uint32_t items) const {
  std::vector<std::uint32_t> parts;
  // As if all were idle: the parts wait in the line for the calls that take them.
  for (const PlannedCall& call : plan_for(items, all_of(available()))) parts.push_back(call.items);
  return parts;
}

bool GatherTable::hopeless(const Waiting& request, TimePoint now) const {
  if (request.deadline == kNever) return false;
  if (request.deadline <= now) return true;
  // Where nothing is there it is tried: one slow call would else refuse all others for good.
  if (settings_.deadlines != Deadlines::kPredict || idle()) return false;
  Duration least = Duration::max();
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    const GatherGroup& facts = groups_[g].facts;
    const std::uint32_t size = std::max(facts.range.min, request.items);
    if (takes_alone(facts, request.items)) least = std::min(least, costs_.of(g, size));
  }
  return least != Duration::max() && later(now, least) > request.deadline;
}

void GatherTable::refuse(const WaitingPtr& request, RequestState how) {
  tally_.submitted();
  request->state_ = how;
  tally_.ended(how);
}

/// First what may throw: the request is in the line, or nothing of it is here.
void GatherTable::enter(const WaitingPtr& request, TimePoint now) {
  if (request->deadline != kNever)
    deadlines_.emplace(std::pair(request->deadline, request->id), request);
  try {
    line_.add(request, settings_.ageing);
  } catch (...) {
    forget_deadline(*request);
    throw;
  }
  tally_.submitted();
  tally_.entered(request->items, request->bytes);
  arrivals_.came(now);
  request->state_ = RequestState::kWaiting;
}

void GatherTable::forget_deadline(const Waiting& request) {
  if (request.deadline != kNever) deadlines_.erase(std::pair(request.deadline, request.id));
}

void GatherTable::runs(Waiting& request, TimePoint now) {
  tally_.waited(now - request.submitted);
  tally_.runs();
  running_items_ += request.items;
  request.state_ = RequestState::kRunning;
}

void GatherTable::stops(const Waiting& request) noexcept {
  tally_.stops();
  running_items_ -= request.items;
}

void GatherTable::leave_line(const WaitingPtr& request) {
  line_.remove(*request);
  tally_.left(request->items, request->bytes);
}

bool GatherTable::remove(const WaitingPtr& request, RequestState how) {
  if (request->state_ != RequestState::kWaiting) return false;
  leave_line(request);
  forget_deadline(*request);
  request->state_ = how;
  tally_.ended(how);
  return true;
}

/// The call goes on and keeps its instance. ended() finds the request no longer running and passes
/// it over.
bool GatherTable::answer_early(const WaitingPtr& request, RequestState how) {
  if (!answer(request, how)) return false;
  if (how == RequestState::kExpired) tally_.late();
  return true;
}

bool GatherTable::answer(const WaitingPtr& request, RequestState how) {
  if (request->state_ != RequestState::kRunning) return false;
  forget_deadline(*request);
  stops(*request);
  request->state_ = how;
  tally_.ended(how);
  return true;
}

void GatherTable::expire(TimePoint now, Decision& decision) {
  while (!deadlines_.empty() && deadlines_.begin()->first.first <= now) {
    const WaitingPtr request = deadlines_.begin()->second;
    if (remove(request, RequestState::kExpired))
      decision.expired.push_back(request);
    else if (answer_early(request, RequestState::kExpired))
      decision.late.push_back(request);
    else
      // Not reached: what neither waits nor runs has no deadline here. It is erased so that the
      // loop ends.
      deadlines_.erase(deadlines_.begin());
  }
}

Decision GatherTable::decide(TimePoint now) {
  Decision decision;
  expire(now, decision);
  while (start_part(now, decision)) {
  }
  while (start_what_may_leave(now, decision)) {
  }
  decision.wake = next_wake();
  return decision;
}

TimePoint GatherTable::next_wake() const {
  return deadlines_.empty() ? wait_until_ : std::min(wait_until_, deadlines_.begin()->first.first);
}

/// A part of a batch that failed runs by itself; where no idle instance takes all of it, in calls
/// as the plan divides it.
bool GatherTable::start_part(TimePoint now, Decision& decision) {
  if (largest_idle() == 0) return false;
  for (std::uint64_t number = 0;;) {
    const auto [next, part] = line_.next_part(number);
    if (part.empty()) return false;
    number = next;
    auto choice = choose(part, items_of(part));
    if (!choice) continue;
    begin(choice->first, std::move(choice->second), Reason::kIsolate, now, decision);
    return true;
  }
}

/// The most items that an idle instance takes; 0: none is idle.
std::uint32_t GatherTable::largest_idle() const noexcept {
  std::uint32_t largest = 0;
  for (const Instances& group : groups_)
    if (group.idle != 0) largest = std::max(largest, group.facts.range.max);
  return largest;
}

/// Looks at the requests of the rest, and at one that begins before it. A request with a deadline
/// waits for at most half of the time that it can spare beside its call, so that it also ends in
/// time where the call takes longer than expected.
GatherTable::Patience GatherTable::patience_of(std::uint64_t rest) const {
  TimePoint first = line_.oldest();
  TimePoint half_time = line_.first_half_time();
  if (rest != line_.line_items()) {
    first = half_time = kNever;
    auto each = line_.line().rbegin();
    for (std::uint64_t after = 0; after < rest; ++each) {
      first = std::min(first, each->second->submitted);
      half_time = std::min(half_time, each->second->half_time());
      after += each->second->items;
    }
  }
  const TimePoint timeout = later(first, settings_.batching_timeout);
  if (half_time == kNever) return {timeout, Reason::kTimeout};
  if (const std::optional<PlannedCall> call = first_call(rest)) half_time -= cost(*call) / 2;
  if (half_time >= timeout) return {timeout, Reason::kTimeout};
  return {half_time, Reason::kDeadline};
}

GatherTable::Leaving GatherTable::may_leave(TimePoint now) {
  const std::uint32_t most = largest();
  const std::uint64_t items = line_.line_items();
  if (most == 1) return {items, Reason::kIdle};
  if (flushing_) return {items, Reason::kFlush};
  if (settings_.batching == Batching::kIdle) return {items, Reason::kIdle};
  const std::uint64_t rest = items % most;
  if (rest == 0) return {items, Reason::kFull};
  const Patience patience = patience_of(rest);
  if (now >= patience.until) return {items, patience.reason};
  const TimePoint timeout = patience.until;
  if (settings_.batching == Batching::kFull)
    wait_until_ = timeout;
  else if (!pays_to_wait_for_next(rest, now, timeout))
    return {items, Reason::kIdle};
  return {items - rest, Reason::kFull};
}

bool GatherTable::pays_to_wait_for_next(std::uint64_t items, TimePoint now, TimePoint timeout) {
  const std::optional<PlannedCall> call = first_call(items);
  std::uint32_t idle = 0;
  for (const Instances& group : groups_) idle += group.idle;
  if (!call || idle > 1) return false;
  const auto n = static_cast<std::uint32_t>(items);
  WaitView view;
  view.waiting = n;
  view.gap = arrivals_.gap(now);
  view.now_alone = costs_.of(call->group, n);
  view.with_next = costs_.of(call->group, n + 1);
  view.next_alone = costs_.of(call->group, 1);
  if (!pays_to_wait(view)) return false;
  // Asked again when the next one is overdue: then the expected gap has grown.
  // At least 1 us, so that a gap of 0 does not decide again and again at the same time.
  wait_until_ = std::min(timeout, later(now, std::max(view.gap, Duration(1'000))));
  return true;
}

std::optional<GatherTable::Choice> GatherTable::choose_from(WaitingLine::Place front,
                                                            std::uint64_t items) const {
  if (front->second->items > largest_idle()) return std::nullopt;
  const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(items, largest()));
  WaitingList first = line_.first(most, front);
  // A request of more items than are gathered runs alone.
  if (first.empty()) first.push_back(front->second);
  return choose(first, items);
}

std::optional<GatherTable::Choice> GatherTable::choose(const WaitingList& first,
                                                       std::uint64_t items) const {
  // Requests of several items may leave a call short of its min: then for fewer items.
  while (items > 0) {
    std::optional<PlannedCall> call = first_call(items);
    if (!call) break;
    WaitingList chosen = leading(first, call->items);
    const std::uint32_t sum = items_of(chosen);
    // The first request alone is more than the planned call takes.
    if (sum == 0) break;
    if (sum == call->items) return Choice(*call, std::move(chosen));
    const Instances& group = groups_[call->group];
    const std::uint32_t min = range_of(group).min;
    if (sum >= min || group.facts.padding) {
      call->items = sum;
      call->padding = min > sum ? min - sum : 0;
      return Choice(*call, std::move(chosen));
    }
    // Fewer in each round: the sum is below the call's items, which are at most `items`.
    items = sum;
  }
  const std::optional<PlannedCall> call = call_for(*first.front());
  if (!call) return std::nullopt;
  return Choice(*call, {first.front()});
}

/// Fewer items, so that the one of them with the least time makes it; false where none would.
bool GatherTable::make_smaller(PlannedCall& call, WaitingList& chosen, TimePoint now) const {
  // The one of the earliest deadline is in the smaller call in any case; others fill that up.
  const auto urgent = std::ranges::min_element(chosen, {}, &Waiting::deadline);
  const WaitingPtr first = *urgent;
  const Range range = range_of(groups_[call.group]);
  for (std::uint32_t size = call.items; size-- > first->items;) {
    if (size < range.min || later(now, costs_.of(call.group, size)) > first->deadline) continue;
    WaitingList fewer{first};
    std::uint32_t sum = first->items;
    for (const WaitingPtr& request : chosen) {
      if (request == first || sum + request->items > size) continue;
      sum += request->items;
      fewer.push_back(request);
    }
    if (!range.holds(sum)) continue;
    call.items = sum;
    call.padding = 0;
    chosen = std::move(fewer);
    return true;
  }
  const std::optional<PlannedCall> alone = call_for(*first);
  if (!alone || later(now, cost(*alone)) > first->deadline) return false;
  call = *alone;
  chosen.assign(1, first);
  return true;
}

bool GatherTable::drop_late(PlannedCall& call, WaitingList& chosen, Reason& reason, TimePoint now,
                            Decision& decision) {
  const bool tried = batches_.empty() && line_.size() == 1;  // See hopeless().
  if (settings_.deadlines != Deadlines::kPredict || tried) return false;
  const auto late = [&](const WaitingPtr& request) {
    return request->deadline < later(now, cost(call));
  };
  // Where more wait than a call takes, a small call would make the next ones late.
  const bool more = line_.line_items() > call.items;
  // This ends: a round makes the call smaller, or leaves one request.
  while (!more && chosen.size() > 1 && std::ranges::any_of(chosen, late)) {
    if (!make_smaller(call, chosen, now)) break;
    reason = Reason::kDeadline;
  }
  bool dropped = false;
  for (const WaitingPtr& request : chosen) {
    if (!late(request) || !remove(request, RequestState::kExpired)) continue;
    decision.expired.push_back(request);
    dropped = true;
  }
  return dropped;
}

/// False when nothing started. What stays in the line is looked at once more, so that a decision
/// at a time when nothing has happened starts nothing.
bool GatherTable::start_what_may_leave(TimePoint now, Decision& decision) {
  wait_until_ = kNever;
  if (line_.line().empty() || largest_idle() == 0) return false;  // The end of a call is next.
  const std::size_t before = decision.starts.size();
  Leaving leaving = may_leave(now);
  while (largest_idle() != 0 && start_next(leaving, now, decision)) {
  }
  return decision.starts.size() > before;
}

/// A request that no idle instance takes is passed over. None starves by that: an instance that
/// takes it by itself is never left to those after it.
bool GatherTable::start_next(Leaving& leaving, TimePoint now, Decision& decision) {
  std::uint64_t open = leaving.items;
  std::uint32_t passed = 0;
  auto front = line_.line().begin();
  while (front != line_.line().end() && open != 0 && passed <= kMostPassed) {
    const std::uint32_t items = front->second->items;
    if (items > open && items < largest()) return false;  // It is of the rest, which waits.
    auto choice = choose_from(front, std::max<std::uint64_t>(open, items));
    if (!choice) {
      open -= std::min<std::uint64_t>(open, items);
      ++front;
      ++passed;
      continue;
    }
    auto& [call, chosen] = *choice;
    Reason reason = open >= largest() && largest() > 1 ? Reason::kFull : leaving.reason;
    if (drop_late(call, chosen, reason, now, decision)) {
      leaving = may_leave(now);  // Others take the places of those that were dropped.
      open = leaving.items;
      passed = 0;
      front = line_.line().begin();
      continue;
    }
    leaving.items -= std::min<std::uint64_t>(leaving.items, call.items);
    begin(call, std::move(chosen), reason, now, decision);
    return true;
  }
  return false;
}

void GatherTable::begin(const PlannedCall& call, WaitingList chosen, Reason reason, TimePoint now,
                        Decision& decision) {
  Instances& group = groups_[call.group];
  Start start;
  start.batch = ++last_batch_;
  start.group = call.group;
  // The first free one. The plan saw an idle instance, so that it is below `wanted` too.
  while (group.busy[start.instance]) ++start.instance;
  group.busy[start.instance] = true;
  --group.idle;
  start.items = call.items;
  start.padding = call.padding;
  start.reason = reason;
  for (const WaitingPtr& request : chosen) {
    leave_line(request);
    runs(*request, now);
  }
  start.requests = std::move(chosen);
  // A copy: the decision hands the requests out, and ended() finds them here.
  batches_.emplace(start.batch, Batch{start, now, cost(call)});
  decision.starts.push_back(std::move(start));
}

BatchRecord GatherTable::record_of(const Batch& ended, bool failed, TimePoint now) {
  const Start& start = ended.start;
  BatchRecord record;
  record.id = start.batch;
  record.group = start.group;
  record.instance = start.instance;
  record.items = start.items;
  record.padding = start.padding;
  record.reason = start.reason;
  record.oldest = kNever;
  for (const WaitingPtr& request : start.requests) {
    record.oldest = std::min(record.oldest, request->submitted);
    record.requests.push_back(request->id);
  }
  record.started = ended.began;
  record.ended = now;
  record.predicted = ended.predicted;
  record.failed = failed;
  return record;
}

WaitingList GatherTable::ended(std::uint64_t batch, bool failed, bool again, TimePoint now) {
  const auto found = batches_.find(batch);
  if (found == batches_.end()) return {};
  const Batch ended = std::move(found->second);
  batches_.erase(found);
  const Start& start = ended.start;
  Instances& group = groups_[start.group];
  group.busy[start.instance] = false;
  // One above `wanted` was taken away while it ran: it gets no more calls, see retired().
  if (start.instance < group.wanted) ++group.idle;
  try {
    // How long a failure took says nothing of a call that succeeds.
    if (!failed) costs_.ended(start.group, start.items + start.padding, now - ended.began);
    tally_.batch(record_of(ended, failed, now));
  } catch (const std::bad_alloc&) {
    // The figures lack it.
  }
  if (!failed || !again || !settings_.isolate || start.requests.size() < 2) return {};
  WaitingList back;
  for (const WaitingPtr& request : start.requests)
    if (request->state_ == RequestState::kRunning) back.push_back(request);
  if (back.empty()) return {};
  for (const WaitingPtr& request : back) {
    stops(*request);
    tally_.entered(request->items, request->bytes);
    request->state_ = RequestState::kWaiting;
  }
  // Halves of halves end at single requests: one that fails alone is a bad one, and is answered.
  const auto half = static_cast<std::ptrdiff_t>((back.size() + 1) / 2);
  line_.add_part({back.begin(), back.begin() + half});
  if (half < static_cast<std::ptrdiff_t>(back.size()))
    line_.add_part({back.begin() + half, back.end()});
  return back;
}

void GatherTable::resize(std::uint32_t group, std::uint32_t instances) {
  Instances& some = groups_[group];
  some.wanted = instances;
  // It never shrinks: instances that are too many may still run, and retired() asks for them.
  if (some.busy.size() < instances) some.busy.resize(instances, false);
  some.idle = 0;
  for (std::uint32_t i = 0; i < instances; ++i) some.idle += some.busy[i] ? 0 : 1;
}

bool GatherTable::retired(std::uint32_t group, std::uint32_t instance) const noexcept {
  return instance >= groups_[group].wanted && !groups_[group].busy[instance];
}

WaitingList GatherTable::in_calls() const {
  WaitingList found;
  for (const auto& [id, batch] : batches_)
    found.insert(found.end(), batch.start.requests.begin(), batch.start.requests.end());
  return found;
}

Duration GatherTable::expected_wait() const {
  double rate = 0;  // Items per nanosecond.
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    const std::uint32_t size = range_of(groups_[g]).max;
    const Duration time = costs_.of(g, size);
    if (time > Duration{} && groups_[g].wanted != 0)
      rate += static_cast<double>(size) * groups_[g].wanted / static_cast<double>(time.count());
  }
  // Without a measurement nothing is told; with one at most an hour, 3.6e12 ns.
  if (rate <= 0) return {};
  return Duration(
      static_cast<Duration::rep>(std::min(static_cast<double>(line_.items()) / rate, 3.6e12)));
}

}  // namespace corelane::scheduler
