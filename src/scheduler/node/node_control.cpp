/// What users ask of a node beside requests: to cancel, drain, end and change.
#include <algorithm>
#include <utility>

#include "base/guard.h"
#include "scheduler/node/node_core.h"
#include "scheduler/node/split_request.h"

namespace corelane::scheduler {

bool NodeCore::cancel(const TicketPtr& ticket) {
  if (ticket->is_split) {
    const auto split = ticket->split.lock();
    bool all = split != nullptr;
    for (std::size_t i = 0; split != nullptr && i < split->tickets.size(); ++i) {
      const TicketPtr part = split->tickets[i].lock();
      all = part != nullptr && cancel(part) && all;
    }
    // True where each part left the line: what runs already may still have a result.
    return all;
  }
  Aftermath after;
  {
    const MutexLock lock(mutex_);
    // Without memory for its request it has none.
    if (ticket->state() == RequestState::kRunning && ticket->request != nullptr)
      ticket->request->cancel();
    if (ticket->id == 0 || !table_.remove(ticket, RequestState::kCancelled)) return false;
    end(ticket, RequestState::kCancelled,
        error(Code::kCancelled, "request {} was cancelled", ticket->id), after);
    decide(clock_->now(), after);
    wake();
  }
  settle(after);
  return true;
}

RequestState NodeCore::state_of(const TicketState& ticket) const {
  if (ticket.done()) return ticket.outcome();
  if (const auto split = ticket.split.lock(); split != nullptr) {
    for (const std::weak_ptr<TicketState>& each : split->tickets) {
      const TicketPtr part = each.lock();
      if (part == nullptr || state_of(*part) != RequestState::kWaiting)
        return RequestState::kRunning;
    }
    return RequestState::kWaiting;
  }
  const MutexLock lock(mutex_);
  const RequestState state = ticket.state();
  return state == RequestState::kRunning ? state : RequestState::kWaiting;
}

/// Cancels the requests whose outer request was cancelled.
void NodeCore::cancel_unwanted(Aftermath& after) {
  for (const WaitingPtr& request : table_.line().all()) {
    const RequestPtr& outer = own(request)->outer;
    if (outer == nullptr || !outer->cancelled()) continue;
    if (table_.remove(request, RequestState::kCancelled))
      end(own(request), RequestState::kCancelled,
          error(Code::kCancelled, "request {} was cancelled", request->id), after);
  }
}

void NodeCore::cancel_waiting(Aftermath& after) {
  for (const WaitingPtr& request : table_.line().all())
    if (table_.remove(request, RequestState::kCancelled))
      end(own(request), RequestState::kCancelled,
          error(Code::kCancelled, "the pipeline was shut down before request {} ran", request->id),
          after);
}

void NodeCore::abort_running(Aftermath& after) {
  for (const WaitingPtr& request : table_.in_calls())
    if (table_.answer_early(request, RequestState::kCancelled))
      end(own(request), RequestState::kCancelled,
          error(Code::kCancelled, "the pipeline was shut down while a backend ran request {}",
                request->id),
          after);
}

Status NodeCore::wait_idle(MutexLock& lock, TimePoint until) {
  ++blocked_;
  // Counted before this look, since settle() notifies nobody where it counts none.
  while (!at_rest() && clock_->wait_until(lock.native(), changed_, until)) {
  }
  --blocked_;
  if (at_rest()) return {};
  return error(Code::kTimeout, "{} requests wait, {} run, and {} calls have not ended; they go on",
               table_.line().size(), table_.running(), table_.running_batches());
}

namespace {

Failure wait_in_a_call(std::string_view what) {
  return error(Code::kWrongState,
               "{} waits for the end of all calls, and would do so forever in one of them; call it "
               "in another thread",
               what);
}

}  // namespace

/// Callback threads do not wait for each other: two would do so forever.
void NodeCore::end_callbacks() {
  if (dispatch::CallbackThread::any_is_current())
    callbacks_->stop();
  else
    callbacks_->stop_and_join();
}

Status NodeCore::drain(TimePoint until) {
  if (inside()) return wait_in_a_call("drain()");
  Aftermath after;
  MutexLock lock(mutex_);
  ++draining_;
  table_.flush(true);
  decide(clock_->now(), after);
  lock.unlock();
  settle(after);
  lock.lock();
  Status status = wait_idle(lock, until);
  --draining_;
  table_.flush(hurries());
  return status;
}

void NodeCore::close(Shutdown how) {
  Aftermath after;
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    table_.flush(true);
    if (how != Shutdown::kDrain) cancel_waiting(after);
    if (how == Shutdown::kAbort) abort_running(after);
    decide(clock_->now(), after);
    wake();
  }
  settle(after);
}

Status NodeCore::shutdown(Shutdown how, TimePoint until) {
  if (inside()) return wait_in_a_call("shutdown()");
  close(how);
  MutexLock lock(mutex_);
  return wait_idle(lock, until);
}

/// New instances are there before the table gives them calls. Old ones go when the table has no
/// call on them any more, and gives them none.
Status NodeCore::resize_group(std::uint32_t group, std::uint32_t instances) {
  const std::uint32_t before = stage_->groups()[group].instances;
  if (instances > before) CORELANE_TRY(stage_->resize(group, instances));
  {
    MutexLock lock(mutex_);
    table_.resize(group, instances);
    ++blocked_;
    for (std::uint32_t i = instances; i < before; ++i)
      while (!table_.retired(group, i)) changed_.wait(lock.native());
    --blocked_;
  }
  return instances < before ? stage_->resize(group, instances) : Status();
}

Status check_max_batch(const std::vector<Topology::Group>& groups, const NodeSettings& settings) {
  for (std::size_t g = 0; g < groups.size() && settings.max_batch != 0; ++g)
    if (settings.max_batch < groups[g].range.min)
      return error(Code::kInvalidArgument,
                   "key 'max_batch': given {}, and group {} of backend '{}' takes {} items at "
                   "least; allowed is 0, or {} and more; raise max_batch, or leave it out",
                   settings.max_batch, g + 1, groups[g].backend, groups[g].range.min,
                   groups[g].range.min)
          .with(Detail::kKey, "max_batch")
          .with(Detail::kGiven, settings.max_batch);
  return {};
}

/// New instances of all groups first: what fails until then is taken back. Groups whose number of
/// instances is not changed are not asked, since a stage may have fixed ones.
Status NodeCore::resize_groups(const NodeSettings& held, const NodeSettings& settings) {
  const std::vector<Topology::Group> before = stage_->groups();
  CORELANE_TRY(check_max_batch(before, settings));
  const auto wanted = [&](std::uint32_t g) {
    const std::uint32_t number = settings.groups[g].instance_num;
    return number == held.groups[g].instance_num ? before[g].instances : number;
  };
  for (std::uint32_t g = 0; g < settings.groups.size(); ++g) {
    if (wanted(g) <= before[g].instances) continue;
    Status grown = resize_group(g, wanted(g));
    if (grown.ok()) continue;
    for (std::uint32_t taken = 0; taken < g; ++taken)
      if (wanted(taken) > before[taken].instances)
        (void)resize_group(taken, before[taken].instances);
    return grown;
  }
  for (std::uint32_t g = 0; g < settings.groups.size(); ++g)
    if (wanted(g) < before[g].instances) CORELANE_TRY(resize_group(g, wanted(g)));
  return {};
}

/// One change at a time: `change` makes the new settings of those that hold now.
Status NodeCore::reconfigure(const Change& change) {
  if (inside())
    return error(Code::kWrongState,
                 "a pipeline cannot be reconfigured in forward() of its backend");
  NodeSettings settings;
  {
    MutexLock lock(mutex_);
    ++blocked_;
    while (changing_) changed_.wait(lock.native());
    --blocked_;
    changing_ = true;
    settings = table_.settings();
  }
  Result<NodeSettings> changed =
      no_throw("the change of settings", [&] { return change(settings); });
  Status status = changed ? no_throw("the change of instances",
                                     [&] { return resize_groups(settings, *changed); })
                          : changed.error();
  Aftermath after;
  {
    const MutexLock lock(mutex_);
    changing_ = false;
    if (status.ok()) table_.change(*std::move(changed));
    decide(clock_->now(), after);
    wake();
  }
  settle(after);
  return status;
}

}  // namespace corelane::scheduler
