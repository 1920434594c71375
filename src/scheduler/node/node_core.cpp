#include "scheduler/node/node_core.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/guard.h"
#include "base/later.h"
#include "base/reserve.h"
#include "scheduler/node/split_request.h"
#include "scheduler/stages/instance_thread.h"
#include "scheduler/stages/release_scope.h"

namespace corelane::scheduler {
namespace {

std::vector<GatherGroup> groups_of(const Stage& stage, const NodeSettings& settings) {
  std::vector<GatherGroup> groups;
  for (const Topology::Group& group : stage.groups()) {
    const std::size_t g = groups.size();
    // A stage of the user's may have more groups than the settings; these do not pad.
    groups.push_back(
        {group.range, group.instances, g < settings.groups.size() && settings.groups[g].padding});
  }
  return groups;
}

}  // namespace

NodeCore::NodeCore(const NodeSettings& settings, std::unique_ptr<Stage> stage,
                   std::shared_ptr<Clock> clock)
    : clock_(std::move(clock)),
      stage_(std::move(stage)),
      callbacks_(
          std::make_shared<dispatch::CallbackThread>(clock_, "corelane-answer", "scheduler")),
      table_(groups_of(*stage_, settings), settings) {
  set_name(settings.name);
}

void NodeCore::set_name(std::string_view name) { what_ = fmt::format("node '{}'", name); }

/// The instances first: their threads may still be at the end of a last call, in this object.
NodeCore::~NodeCore() {
  stage_.reset();
  end_callbacks();
}

bool NodeCore::inside() const noexcept { return InstanceThread::current_owner() == this; }

TicketPtr NodeCore::new_ticket(Dict values, const RequestOptions& options, Callback on_done) {
  auto ticket = std::make_shared<TicketState>();
  // A result is how success is told: one that the user gave would be taken for the backend's.
  values.erase(kResult);
  ticket->values = std::move(values);
  ticket->options = options;
  ticket->on_done = std::move(on_done);
  ticket->node = weak_from_this();
  ticket->clock = clock_;
  ticket->items = options.items;
  ticket->bytes = options.bytes;
  ticket->priority = options.priority;
  return ticket;
}

TicketPtr NodeCore::submit(Dict values, const RequestOptions& options, Callback on_done,
                           RequestPtr outer) {
  TicketPtr ticket = new_ticket(std::move(values), options, std::move(on_done));
  ticket->outer = std::move(outer);
  enter_or_refuse(ticket);
  return ticket;
}

void NodeCore::enter_or_refuse(const TicketPtr& ticket) {
  Aftermath after;
  bool splits = false;
  Status wrong = check_request(ticket->values, ticket->options);
  {
    MutexLock lock(mutex_);
    ticket->id = ++last_id_;
    nested_ = nested_ || ticket->outer != nullptr;
    // Those of a part are the whole request's, however long the parts before it waited for room.
    if (ticket->whole == nullptr) {
      ticket->submitted = clock_->now();
      if (ticket->options.timeout > Duration{})
        ticket->deadline = later(ticket->submitted, ticket->options.timeout);
    }
    splits = wrong.ok() && !table_.fits(ticket->items);
    if (wrong.ok() && !splits) wrong = enter(lock, ticket, after);
    if (!wrong.ok())
      refuse_as(ticket, std::move(wrong), after);
    else if (!splits)
      decide(clock_->now(), after);
  }
  settle(after);
  if (splits) enter_split(ticket);
}

/// What was dropped to make room for it has its answer in any case.
Status NodeCore::enter(MutexLock& lock, const TicketPtr& ticket, Aftermath& after) noexcept {
  try {
    CORELANE_TRY(admit(lock, ticket, after));
    table_.enter(ticket, clock_->now());
    return {};
  } catch (...) {
    return status_of_exception("a request");
  }
}

/// Tickets of the parts of a request that no call can take.
Result<std::vector<TicketPtr>> NodeCore::make_parts(const TicketPtr& ticket) {
  // Before anything of that many parts is made: the number is the caller's.
  CORELANE_TRY(check_split(ticket->values, ticket->items));
  std::vector<std::uint32_t> sizes;
  {
    const MutexLock lock(mutex_);
    if (table_.settings().oversize == Oversize::kRefuse)
      return error(Code::kOutOfRange,
                   "a request has {} items, which no call of this node takes; submit fewer, or "
                   "set oversize = \"split\"",
                   ticket->items)
          .with(Detail::kGiven, ticket->items);
    sizes = table_.parts_of(ticket->items);
  }
  CORELANE_ASSIGN(std::vector<Dict> values, split_values(ticket->values, sizes));
  const auto whole = std::make_shared<SplitRequest>(ticket, sizes.size());
  std::vector<TicketPtr> parts;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    RequestOptions options = ticket->options;
    options.items = sizes[i];
    options.bytes = ticket->options.bytes * sizes[i] / ticket->items;
    const TicketPtr part = new_ticket(std::move(values[i]), options, nullptr);
    part->whole = whole;
    part->part = i;
    part->outer = ticket->outer;
    part->submitted = ticket->submitted;
    part->deadline = ticket->deadline;
    whole->tickets.push_back(part);
    parts.push_back(part);
  }
  ticket->is_split = true;
  // Weakly: the parts hold `whole`, which holds this ticket.
  ticket->split = whole;
  return parts;
}

/// Each part is a request of its own for the figures, and, where the policy is to block, for the
/// limits: the parts enter as there is room.
void NodeCore::enter_split(const TicketPtr& ticket) {
  const auto parts = no_throw("splitting a request", [&] { return make_parts(ticket); });
  Status wrong = parts ? Status() : parts.error();
  Aftermath after;
  bool one_by_one = false;
  {
    MutexLock lock(mutex_);
    one_by_one = wrong.ok() && view_for(*ticket).policy == dispatch::FullPolicy::kBlock;
    if (!one_by_one) {
      if (wrong.ok()) wrong = enter_parts(lock, ticket, *parts, after);
      if (!wrong.ok()) refuse_as(ticket, std::move(wrong), after);
    }
  }
  settle(after);
  if (!one_by_one) return;
  for (const TicketPtr& part : *parts) enter_or_refuse(part);
}

/// All of them or none, so that none makes room for another one, or is refused after it.
Status NodeCore::enter_parts(MutexLock& lock, const TicketPtr& ticket,
                             const std::vector<TicketPtr>& parts, Aftermath& after) noexcept {
  try {
    CORELANE_TRY(admit(lock, ticket, after));
    // Where memory runs out between two parts, those that have entered run for nobody: `whole`
    // never gets all answers, and the refusal of the request stands.
    const TimePoint now = clock_->now();
    for (const TicketPtr& part : parts) {
      part->id = ++last_id_;
      table_.enter(part, now);
    }
    decide(now, after);
    return {};
  } catch (...) {
    return status_of_exception("a request");
  }
}

void NodeCore::refuse_as(const TicketPtr& ticket, Status why, Aftermath& after) {
  const bool ended = why.code() == Code::kCancelled;
  refuse(ticket, ended ? RequestState::kCancelled : RequestState::kRejected, std::move(why), after);
}

dispatch::AdmissionView NodeCore::view_for(const TicketState& ticket) const {
  const NodeSettings& settings = table_.settings();
  dispatch::AdmissionView view;
  view.waiting = table_.line().items();
  view.max_waiting = settings.queue_items;
  view.waiting_bytes = table_.line().bytes();
  view.max_bytes = settings.queue_bytes;
  view.in_flight = view.waiting + table_.running_items();
  view.max_in_flight = settings.max_in_flight;
  view.items = ticket.items;
  view.bytes = ticket.bytes;
  view.deadline = ticket.deadline;
  switch (settings.queue_policy) {
    case QueuePolicy::kBlock:
      // In forward() of this node the wait for room would be a wait for its own call.
      view.policy = inside() ? dispatch::FullPolicy::kReject : dispatch::FullPolicy::kBlock;
      break;
    case QueuePolicy::kReject:
      view.policy = dispatch::FullPolicy::kReject;
      break;
    case QueuePolicy::kDropOldest:
      view.policy = dispatch::FullPolicy::kDropOldest;
      break;
  }
  return view;
}

/// So many items and bytes leave the line; false, and none does, where it has fewer: parts of
/// batches that failed are not dropped.
bool NodeCore::drop_oldest(std::uint64_t items, std::uint64_t bytes, Aftermath& after) {
  if (table_.line().line_items() < items || table_.line().line_bytes() < bytes) return false;
  std::uint64_t gone_items = 0, gone_bytes = 0;
  while (gone_items < items || gone_bytes < bytes) {
    const TicketPtr oldest = own(table_.line().oldest_request());
    if (oldest == nullptr || !table_.remove(oldest, RequestState::kRejected)) break;
    gone_items += oldest->items;
    gone_bytes += oldest->bytes;
    end(oldest, RequestState::kRejected,
        again_later(error(Code::kBusy, "request {} was dropped for a newer one: the line is full",
                          oldest->id)),
        after);
  }
  return true;
}

/// With the time until there is room, where calls have been measured.
Status NodeCore::again_later(const Status& why) const {
  const double wait = ms(table_.expected_wait());
  if (wait <= 0) return why;
  return why.with(Detail::kRetryAfter,
                  text_or_none([wait] { return fmt::format("{:.1f}", wait); }));
}

Status NodeCore::full(dispatch::LineLimit limit, bool for_ever) const {
  if (limit == dispatch::LineLimit::kNone)
    return error(Code::kBusy, "requests that were submitted earlier wait for room in the line");
  const NodeSettings& settings = table_.settings();
  const bool items = limit == dispatch::LineLimit::kItems;
  const bool bytes = limit == dispatch::LineLimit::kBytes;
  const std::string_view key = items ? "queue_items" : bytes ? "queue_bytes" : "max_in_flight";
  const std::string most = text_or_none([&] {
    return fmt::format("{} {}",
                       items   ? settings.queue_items
                       : bytes ? settings.queue_bytes
                               : settings.max_in_flight,
                       bytes ? "bytes" : "items");
  });
  if (for_ever)
    return error(
               Code::kBusy,
               "the request is larger than {} ({}) allows even of an empty line; make it smaller, "
               "or raise the limit",
               key, most)
        .with(Detail::kLimit, most);
  const double wait = ms(table_.expected_wait());
  const std::string when =
      text_or_none([wait] { return wait > 0 ? fmt::format("in {:.1f} ms", wait) : "later"; });
  return again_later(
      error(Code::kBusy,
            "the line is full: {} items and {} bytes wait, {} is {}; try again {}, or raise the "
            "limit",
            table_.line().items(), table_.line().bytes(), key, most, when)
          .with(Detail::kLimit, most));
}

/// It could not enter before its deadline.
Status NodeCore::out_of_time(const TicketState& ticket, const Status& held_up) {
  return held_up.wrap(Code::kTimeout, text_or_none([&] {
                        return fmt::format(
                            "request {} waited for room until its timeout of {:.3f} ms", ticket.id,
                            ms(ticket.options.timeout));
                      }));
}

Status NodeCore::admit(MutexLock& lock, const TicketPtr& ticket, Aftermath& after) {
  std::condition_variable room;
  const LinePlace place{order_of(*ticket, table_.settings().ageing), ticket->id};
  Status status = enter_in_turn(lock, ticket, Turn{place, &room}, after);
  // It has not waited, so that nothing was let go for it and nobody waits for it to leave.
  if (turns_.erase(place) == 0) return status;
  table_.flush(hurries());
  wake();  // The next one may have room, too.
  return status;
}

/// Submissions that wait for room enter in the order of the line: small requests cannot keep a
/// large one out.
Status NodeCore::enter_in_turn(MutexLock& lock, const TicketPtr& ticket, const Turn& turn,
                               Aftermath& after) {
  for (;;) {
    if (closed_) return error(Code::kCancelled, "the pipeline was shut down");
    const TimePoint now = clock_->now();
    const bool waited = turns_.contains(turn.place);
    const dispatch::AdmissionView view = view_for(*ticket);
    dispatch::AdmissionAnswer answer = dispatch::admit(view, now);
    if (waited && now >= ticket->deadline) return out_of_time(*ticket, full(answer.limit, false));
    if (table_.hopeless(*ticket, now))
      return error(Code::kTimeout,
                   "request {} could not end within its timeout of {:.3f} ms: its call takes "
                   "longer than what is left",
                   ticket->id, ms(ticket->options.timeout));
    const bool behind = !turns_.empty() && turns_.begin()->first < turn.place;
    if (answer.what == dispatch::Admission::kEnter && behind &&
        view.policy == dispatch::FullPolicy::kBlock)
      answer = {dispatch::Admission::kWaitForRoom, ticket->deadline};
    switch (answer.what) {
      case dispatch::Admission::kEnter:
        return {};
      case dispatch::Admission::kDropOldest:
        if (!drop_oldest(answer.drop_items, answer.drop_bytes, after))
          return full(answer.limit, false);
        return {};
      case dispatch::Admission::kTooLarge:
        return full(answer.limit, true);
      case dispatch::Admission::kWaitForRoom:
      case dispatch::Admission::kWaitForPace:
        if (turns_.emplace(turn.place, turn.room).second) let_go(now);
        (void)clock_->wait_until(lock.native(), *turn.room, answer.wait_until);
        continue;
      case dispatch::Admission::kQueueFull:
      case dispatch::Admission::kPaced:
      case dispatch::Admission::kCallbacksPending:
        return full(answer.limit, false);
    }
  }
}

/// A line that is full waits for no more: what is held back leaves, by the thread of the clock,
/// since this one waits. Without memory for that, when its own time has come.
void NodeCore::let_go(TimePoint now) {
  table_.flush(true);
  if (table_.holds_back()) (void)set_timer(now);
}

void NodeCore::wake() {
  if (blocked_ != 0) changed_.notify_all();
  if (!turns_.empty()) turns_.begin()->second->notify_one();
}

void NodeCore::refuse(const TicketPtr& ticket, RequestState how, Status why, Aftermath& after) {
  table_.refuse(ticket, how);
  end(ticket, how, std::move(why), after);
}

/// The table knows that it has ended. Its values come back but for those that a backend has.
void NodeCore::end(const TicketPtr& ticket, RequestState how, Status why, Aftermath& after) {
  // A backend may still have it, and can leave it out.
  if (ticket->request != nullptr) ticket->request->cancel();
  Answer answer{ticket, how, std::move(why), std::move(ticket->values)};
  ticket->values.clear();
  note(answer);
  add(std::move(answer), after);
}

void NodeCore::add(Answer answer, Aftermath& after) {
  // Once for all answers of an Aftermath; settle() counts back after the last one.
  if (after.answers.empty()) ++delivering_;
  after.answers.push_back(std::move(answer));
}

void NodeCore::note(const Answer& answer, SureVector<std::uint64_t> parts) noexcept {
  const std::size_t kept = table_.settings().records;
  if (kept == 0) return;
  try {
    endings_.push_back({answer.ticket->id, answer.how, answer.ticket->submitted, clock_->now(),
                        answer.why.message(), std::move(parts)});
  } catch (const std::bad_alloc&) {
    // why() does not know it.
  }
  while (endings_.size() > kept) endings_.pop_front();
}

void NodeCore::decide(TimePoint now, Aftermath& after) noexcept {
  if (nested_) cancel_unwanted(after);
  Decision decision = table_.decide(now);
  follow(decision, after);
  if (set_timer(decision.wake)) return;
  // There is no memory for the timer: what waits for more requests does not wait.
  table_.flush(true);
  decision = table_.decide(now);
  table_.flush(hurries());
  follow(decision, after);
}

void NodeCore::follow(Decision& decision, Aftermath& after) noexcept {
  for (const WaitingPtr& request : decision.expired)
    end(own(request), RequestState::kExpired,
        error(Code::kTimeout, "request {} could not end within its timeout of {:.3f} ms",
              request->id, ms(own(request)->options.timeout)),
        after);
  for (const WaitingPtr& request : decision.late)
    end(own(request), RequestState::kExpired,
        error(Code::kTimeout,
              "request {} had not ended after its timeout of {:.3f} ms; the backend still ran it, "
              "and its result will be dropped",
              request->id, ms(own(request)->options.timeout)),
        after);
  for (Start& start : decision.starts) prepare(start, after);
  // There is room for submissions that wait for it.
  if (!(decision.starts.empty() && decision.expired.empty() && decision.late.empty())) wake();
}

void NodeCore::prepare(Start& start, Aftermath& after) noexcept {
  Aftermath::Call next;
  next.batch = start.batch;
  next.call.group = start.group;
  next.call.instance = start.instance;
  next.call.owner = this;
  for (const WaitingPtr& request : start.requests) next.tickets.push_back(own(request));
  try {
    next.call.batch.reserve(next.tickets.size() + start.padding);
    for (const TicketPtr& ticket : next.tickets) {
      // From here on the values are the backend's. Where memory runs out half-way, the requests
      // without one keep theirs, see outcome().
      ticket->request = std::make_shared<Request>(std::move(ticket->values), ticket->options);
      if (ticket->outer != nullptr) ticket->request->follow(ticket->outer);
      ticket->values.clear();
      next.call.batch.push_back(ticket->request);
    }
  } catch (const std::bad_alloc&) {
    next.prepared = false;
  }
  next.padding = start.padding;
  after.calls.push_back(std::move(next));
}

bool NodeCore::set_timer(TimePoint wake) noexcept {
  // An earlier timer decides again, and then sets the one that is needed.
  if (wake == kNever || wake >= armed_) return true;
  try {
    const Clock::TimerId before =
        std::exchange(timer_, clock_->call_at(wake, [weak = weak_from_this()] {
          if (const auto self = weak.lock()) self->on_timer();
        }));
    // After the new one: where there is no memory for that, the old one stays.
    if (armed_ != kNever) clock_->cancel(before);
    armed_ = wake;
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void NodeCore::on_timer() noexcept {
  const ReleaseScope releasing;
  Aftermath after;
  {
    const MutexLock lock(mutex_);
    armed_ = kNever;
    decide(clock_->now(), after);
    wake();
  }
  settle(after);
}

/// What fills a call up to the group's min are copies of one item of its last request.
Status NodeCore::begin(StageCall& call, std::uint32_t padding) {
  return no_throw(
      "the start of a call",
      [&] {
        const RequestPtr last = call.batch.back();
        for (std::uint32_t i = 0; i < padding; ++i)
          call.batch.push_back(std::make_shared<Request>(
              padding_of(last->values, last->options.items), RequestOptions()));
        return stage_->start(std::move(call));
      },
      Code::kEngineFailed);
}

namespace {

/// What a stage ends in its start() waits here until start() has returned: without it a stage that
/// ends every call at once would nest as deep as the line is long.
struct Starting {
  const void* node = nullptr;
  SureDeque<std::function<void()>> ends;
};
thread_local Starting* starting = nullptr;

/// A call that a stage has.
template <class Call>
struct RunningCall {
  explicit RunningCall(Call&& begun) noexcept : call(std::move(begun)) {}
  const Call call;
  std::atomic<bool> ended{false};
};

}  // namespace

void NodeCore::settle(Aftermath& after) noexcept {
  for (Aftermath::Call& next : after.calls) start(std::move(next));
  if (after.answers.empty()) return;
  for (Answer& answer : after.answers) deliver(answer);
  // A thread that waits for the end counted itself before it looked at `delivering_`.
  if (--delivering_ != 0 || blocked_ == 0) return;
  const MutexLock lock(mutex_);
  changed_.notify_all();
}

void NodeCore::start(Aftermath::Call next) noexcept {
  StageCall call = std::move(next.call);
  // The stage gets the batch; to end the call its place is enough.
  next.call.group = call.group;
  next.call.instance = call.instance;
  using Running = RunningCall<Aftermath::Call>;
  const auto shared = std::allocate_shared<Running>(ReserveAllocator<Running>(), std::move(next));
  const auto done = [this, shared](const Status& status) {
    if (shared->ended.exchange(true)) return;  // A stage may call it once only.
    if (starting == nullptr || starting->node != this) return call_ended(shared->call, status);
    starting->ends.push_back(
        sure_once<void()>([this, shared, status] { call_ended(shared->call, status); }));
  };
  Starting here{this, {}};
  Starting* const outer = std::exchange(starting, starting == nullptr ? &here : starting);
  const Aftermath::Call& running = shared->call;
  const Status started = no_throw("the start of a call", [&]() -> Status {
    if (!running.prepared) return error(Code::kOutOfMemory, "no memory for the requests of a call");
    call.done = done;
    return begin(call, running.padding);
  });
  if (!started.ok())
    done(started.wrap(text_or_none([&] {
      return fmt::format("group {}, instance {} did not start a call", running.call.group,
                         running.call.instance);
    })));
  starting = outer;
  if (outer != nullptr) return;  // Its loop goes on with what has ended here.
  while (!here.ends.empty()) {
    starting = &here;
    const std::function<void()> end = std::move(here.ends.front());
    here.ends.pop_front();
    end();
    starting = nullptr;
  }
}

void NodeCore::deliver(Answer& answer) noexcept {
  TicketPtr ticket = answer.ticket;
  if (ticket->whole != nullptr) {
    auto whole = ticket->whole->ended(ticket->part, ticket->id, answer.how, std::move(answer.why),
                                      std::move(answer.values));
    if (!whole) return;
    ticket = ticket->whole->whole();
    answer = {ticket, whole->how, std::move(whole->why), std::move(whole->values)};
    const MutexLock lock(mutex_);
    note(answer, std::move(whole->parts));
  }
  Callback on_done = std::move(ticket->on_done);
  ticket->answer(answer.how, std::move(answer.why), std::move(answer.values));
  if (!on_done) return;
  callbacks_->post_or_call(sure_once<void()>([ticket, call = std::move(on_done)] {
    Ticket handle;
    handle.state_ = ticket;
    call(handle);
  }));
}

void NodeCore::drop_result(Dict& values, Aftermath& after) {
  if (auto result = values.extract(kResult)) after.values.push_back(std::move(result));
}

NodeCore::Answer NodeCore::outcome(const TicketPtr& ticket, const Status& status,
                                   Aftermath& after) const {
  if (ticket->request == nullptr)  // It was not prepared, and has its values yet.
    return {ticket, RequestState::kFailed, status, std::move(ticket->values)};
  Request& request = *ticket->request;
  Dict values = std::move(request.values);
  Status why = status.ok() ? request.failure() : status;
  if (!why.ok()) {
    drop_result(values, after);
    if (status.ok()) why = why.wrap("the backend failed this request");
    return {ticket, RequestState::kFailed, why.wrap(what_), std::move(values)};
  }
  if (values.contains(kResult)) return {ticket, RequestState::kDone, {}, std::move(values)};
  if (request.cancelled())
    return {ticket, RequestState::kCancelled,
            error(Code::kCancelled, "request {} was cancelled while it ran", ticket->id),
            std::move(values)};
  return {ticket, RequestState::kFailed,
          error(Code::kBadResult, "{}: the backend left \"result\" of request {} out", what_,
                ticket->id),
          std::move(values)};
}

bool NodeCore::may_repeat(std::uint32_t group) const noexcept {
  try {
    return stage_->repeatable_group(group);
  } catch (...) {
    return false;  // Of a stage that breaks its promise nothing is repeated.
  }
}

/// In the instance's thread: what it starts on the same instance runs without a hand-over.
void NodeCore::call_ended(const Aftermath::Call& call, const Status& status) noexcept {
  Aftermath after;
  const bool again = !status.ok() && call.prepared && may_repeat(call.call.group);
  {
    const MutexLock lock(mutex_);
    const TimePoint now = clock_->now();
    for (const WaitingPtr& request : table_.ended(call.batch, !status.ok(), again, now)) {
      const TicketPtr ticket = own(request);
      const bool unwanted = ticket->request->cancelled();
      ticket->values = std::move(ticket->request->values);
      drop_result(ticket->values, after);
      after.requests.push_back(std::move(ticket->request));
      if (unwanted && table_.remove(ticket, RequestState::kCancelled))
        end(ticket, RequestState::kCancelled,
            error(Code::kCancelled, "request {} was cancelled", ticket->id), after);
    }
    for (const TicketPtr& ticket : call.tickets) {
      // Answered early, or waiting again, which gave its request up above.
      if (ticket->state() != RequestState::kRunning) {
        if (ticket->state() != RequestState::kWaiting)
          after.requests.push_back(std::move(ticket->request));
        continue;
      }
      Answer answer = outcome(ticket, status, after);
      after.requests.push_back(std::move(ticket->request));
      table_.answer(ticket, answer.how);
      note(answer);
      add(std::move(answer), after);
    }
    decide(now, after);
    wake();
  }
  settle(after);
}

}  // namespace corelane::scheduler
