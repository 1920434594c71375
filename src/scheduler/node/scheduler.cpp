#include "corelane/scheduler/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/fork.h"
#include "base/guard.h"
#include "base/leaked.h"
#include "base/thread.h"
#include "corelane/base/file.h"
#include "scheduler/backends/inner_backend.h"
#include "scheduler/config/node_toml.h"
#include "scheduler/config/settings.h"
#include "scheduler/gather/tally.h"
#include "scheduler/node/baseline_schedule.h"
#include "scheduler/stages/release_scope.h"

namespace corelane::scheduler {

/// What the handles of a pipeline share: the scheduler, made by name.
class NodeHandle {
 public:
  NodeHandle(const NodeSettings& settings, std::unique_ptr<Backend> made,
             const BackendRegistry& names)
      : name(settings.name),
        scheduler_name(settings.scheduler),
        what(fmt::format("backend '{}'", scheduler_name)),
        range{made->min(), made->max()},
        scheduler(std::move(made)),
        registry(names) {
    const auto* const base = dynamic_cast<BaselineSchedule*>(scheduler.get());
    if (base == nullptr) return;
    core = base->core();
    core->set_name(name);
  }
  /// In forward() of its own backend, and where the library destroys values of requests, it cannot
  /// wait for the calls that run: another thread ends it then.
  ~NodeHandle() {
    const bool waits = !ReleaseScope::active() && (core == nullptr || !core->inside());
    if (waits && !forked()) return;
    using Kept = std::pair<std::unique_ptr<Backend>, std::shared_ptr<NodeCore>>;
    auto* const kept = new Kept(std::move(scheduler), std::move(core));
    // Its threads and locks belong to the parent: nothing of it can be taken apart here.
    if (forked()) return;
    if (kept->second != nullptr) kept->second->close(Shutdown::kCancel);
    auto thread = start_thread("corelane-end", [kept] {
      kept->second.reset();
      delete kept;
    });
    // Without a thread it stays as it is: shut down, and in memory.
    if (thread) thread->detach();
  }
  NodeHandle(const NodeHandle&) = delete;
  NodeHandle& operator=(const NodeHandle&) = delete;

  /// In a child of the process that made it.
  bool forked() const noexcept { return made_in != fork_count(); }

  const std::uint64_t made_in = fork_count();
  const std::string name;
  const std::string scheduler_name;
  const std::string what;  ///< "backend 'A'", the scheduler: for messages.
  const Range range;       ///< Of the scheduler, asked once.
  std::unique_ptr<Backend> scheduler;
  std::shared_ptr<NodeCore> core;  ///< Null where the program brought a scheduler of its own.
  const BackendRegistry& registry;
  std::atomic<std::uint64_t> last_id{0};
};

namespace {

Failure empty_failure(std::string_view what) {
  return error(Code::kWrongState,
               "{} of an empty pipeline; make one with Pipeline::create, from_toml or from_file",
               what);
}

Failure only_baseline(std::string_view what) {
  return error(Code::kUnsupported,
               "{} is part of BaselineSchedule; this pipeline has a scheduler of its own", what);
}

Failure forked_failure() {
  return error(
      Code::kWrongState,
      "the pipeline was made before this process was forked, and its threads stayed in the "
      "parent; make one in the child");
}

bool has_core(const std::shared_ptr<NodeHandle>& node) noexcept {
  return node != nullptr && node->core != nullptr && !node->forked();
}

/// What `what`, a function of the pipeline, is called on.
Result<NodeCore*> core_for(const std::shared_ptr<NodeHandle>& node, std::string_view what) {
  if (node == nullptr) return empty_failure(what);
  if (node->core == nullptr) return only_baseline(what);
  if (node->forked()) return forked_failure();
  return node->core.get();
}

const BackendRegistry& registry_of(const PipelineOptions& options) {
  return options.registry != nullptr ? *options.registry : backend_registry();
}

Result<std::shared_ptr<NodeHandle>> make_node(Result<NodeSettings> read,
                                              const PipelineOptions& options) {
  CORELANE_ASSIGN(NodeSettings settings, std::move(read));
  const BackendRegistry& registry = registry_of(options);
  BackendSurroundings surroundings;
  surroundings.clock = options.clock != nullptr ? options.clock : real_clock();
  surroundings.names = &registry;
  // BaselineSchedule makes one for each group.
  const bool own = settings.scheduler != "BaselineSchedule";
  const SharedDict shared =
      own && options.shared == nullptr ? std::make_shared<Dict>() : options.shared;
  CORELANE_ASSIGN(std::unique_ptr<Backend> scheduler,
                  registry.make(settings.scheduler, surroundings));
  Status ready = no_throw(
      "init() of " + settings.scheduler, [&] { return scheduler->init(settings.settings, shared); },
      Code::kEngineFailed);
  if (!ready.ok()) return error(ready.wrap(fmt::format("node '{}'", settings.name)));
  auto node = std::make_shared<NodeHandle>(settings, std::move(scheduler), registry);
  if (node->range.min >= 1 && node->range.min <= node->range.max) return node;
  return error(Code::kEngineFailed,
               "node '{}': {} says that it takes {} to {} items a call; 1 <= min() <= max() is "
               "needed",
               node->name, node->what, node->range.min, node->range.max);
}

/// The end of a request that a scheduler without tickets has run.
void settle_plain(const NodeHandle& node, TicketState& ticket, Request& request,
                  const Status& status) {
  Dict values;
  // The backend may have kept the request. A value of the user's may throw when it is copied.
  const Status copied = no_throw(
      "copying the values of a request",
      [&] {
        Dict copies = request.values;
        values.swap(copies);
        return Status();
      },
      Code::kEngineFailed);
  if (!copied.ok()) values.swap(request.values);
  Status why = !status.ok() ? status : !request.failure().ok() ? request.failure() : copied;
  if (why.ok() && !values.contains(kResult))
    why = error(Code::kBadResult, "the backend left \"result\" of request {} out", ticket.id);
  if (!why.ok()) {
    values.erase(kResult);
    why = why.wrap(fmt::format("node '{}'", node.name));
  }
  ticket.answer(why.ok() ? RequestState::kDone : RequestState::kFailed, why, std::move(values));
}

/// In the caller's thread: a scheduler of the program's own has no line. The ticket that is
/// returned has its answer, also where the scheduler failed.
TicketPtr run_plain(NodeHandle& node, Dict values, const RequestOptions& options) {
  auto ticket = std::make_shared<TicketState>();
  ticket->id = ++node.last_id;
  ticket->clock = real_clock();
  values.erase(kResult);
  Status wrong = check_request(values, options);
  if (wrong.ok()) wrong = check_range(node.scheduler_name, node.range, options.items);
  if (!wrong.ok()) {
    ticket->answer(RequestState::kRejected, std::move(wrong), std::move(values));
    return ticket;
  }
  const RequestPtr request = std::make_shared<Request>(std::move(values), options);
  bool returned = false;
  Status status = no_throw(
      node.what,
      [&] {
        Status done = node.scheduler->forward(std::span(&request, 1));
        returned = true;
        return done;
      },
      Code::kEngineFailed);
  // What it threw names the backend already.
  if (returned) status = status.wrap(fmt::format("{} failed", node.what));
  settle_plain(node, *ticket, *request, status);
  return ticket;
}

TicketPtr refused(Status why, Dict values) {
  auto ticket = std::make_shared<TicketState>();
  ticket->clock = real_clock();
  ticket->answer(RequestState::kRejected, std::move(why), std::move(values));
  return ticket;
}

TicketPtr submit_to(NodeHandle& node, Dict values, const RequestOptions& options,
                    std::function<void(const Ticket&)> on_done) {
  if (node.core != nullptr)
    return node.core->submit(std::move(values), options, std::move(on_done));
  return run_plain(node, std::move(values), options);
}

/// The answer of requests for whose own ticket there was no memory: made when the library is
/// loaded.
struct Starved {
  TicketPtr ticket = std::make_shared<TicketState>();
  Starved() {
    ticket->clock = real_clock();
    ticket->answer(RequestState::kRejected,
                   error(Code::kOutOfMemory, "no memory for a request; free some and call again"),
                   {});
  }
};
Leaked<const Starved> starved;

TicketPtr submit_or_starve(NodeHandle& node, Dict values, const RequestOptions& options,
                           std::function<void(const Ticket&)> on_done) noexcept {
  try {
    return submit_to(node, std::move(values), options, std::move(on_done));
  } catch (const std::bad_alloc&) {
    return starved->ticket;
  }
}

}  // namespace

std::string_view state_name(RequestState state) noexcept {
  switch (state) {
    case RequestState::kWaiting:
      return "waiting";
    case RequestState::kRunning:
      return "running";
    case RequestState::kDone:
      return "done";
    case RequestState::kFailed:
      return "failed";
    case RequestState::kRejected:
      return "rejected";
    case RequestState::kCancelled:
      return "cancelled";
    case RequestState::kExpired:
      return "expired";
  }
  return "unknown";
}

std::uint64_t Ticket::id() const noexcept { return state_ == nullptr ? 0 : state_->id; }

RequestState Ticket::state() const {
  if (state_ == nullptr) return RequestState::kCancelled;
  const auto node = state_->forked() ? nullptr : state_->node.lock();
  return node == nullptr ? state_->outcome() : node->state_of(*state_);
}

bool Ticket::done() const { return state_ != nullptr && state_->done(); }

Status Ticket::wait(TimePoint until) const {
  if (state_ == nullptr) return error(Code::kWrongState, "an empty ticket stands for no request");
  // An answer that is there can be looked at anywhere, in forward() of the same pipeline too.
  if (done()) return state_->wait(until);
  if (const auto node = state_->node.lock(); node != nullptr && node->inside())
    return error(Code::kWrongState,
                 "waiting for a request of the same pipeline in forward() would deadlock");
  return state_->wait(until);
}

bool Ticket::cancel() const {
  if (state_ == nullptr || state_->forked()) return false;
  const auto node = state_->node.lock();
  return node != nullptr && node->cancel(state_);
}

Result<Dict> Ticket::take() const {
  if (state_ == nullptr) return error(Code::kWrongState, "an empty ticket stands for no request");
  // It is one for all: taking from it would be seen by others.
  if (state_ == starved->ticket) return error(state_->wait(kNever));
  return state_->take();
}

bool Event::done() const { return given_.load(std::memory_order_acquire) && ticket_.done(); }

Status Event::wait(TimePoint until) const {
  if (!given_.load(std::memory_order_acquire))
    return error(Code::kWrongState, "this event was given to no pipeline yet");
  return ticket_.wait(until);
}

Result<Dict> Event::take() const {
  if (!given_.load(std::memory_order_acquire))
    return error(Code::kWrongState, "this event was given to no pipeline yet");
  return ticket_.take();
}

Result<Pipeline> Pipeline::create(const Config& config, const PipelineOptions& options) {
  Pipeline made;
  CORELANE_ASSIGN(made.node_, make_node(read_settings(config, registry_of(options)), options));
  return made;
}

Result<Pipeline> Pipeline::from_toml(std::string_view text, const PipelineOptions& options) {
  Pipeline made;
  CORELANE_ASSIGN(made.node_,
                  make_node(read_node_toml(text, "toml", registry_of(options)), options));
  return made;
}

Result<Pipeline> Pipeline::from_file(const std::string& path, const PipelineOptions& options) {
  CORELANE_ASSIGN(const ByteVector bytes, read_file(path, kMaxToml));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Pipeline made;
  CORELANE_ASSIGN(made.node_, make_node(read_node_toml(text, path, registry_of(options)), options));
  return made;
}

Status Pipeline::run(Dict& request, const RequestOptions& options) const {
  Status answer;
  std::shared_ptr<TicketState> ticket;
  run_all({&request, 1}, options, {&answer, 1}, {&ticket, 1});
  return answer;
}

std::vector<Status> Pipeline::run(std::span<Dict> requests, const RequestOptions& options) const {
  std::vector<Status> answers(requests.size());
  std::vector<TicketPtr> tickets(requests.size());
  run_all(requests, options, answers, tickets);
  return answers;
}

/// The event of a request, which leaves it and cannot be used again; null where it has none.
Result<std::shared_ptr<Event>> Event::take_from(Dict& request) {
  const auto found = request.find(kEvent);
  if (found == request.end()) return nullptr;
  const auto* const given = std::any_cast<std::shared_ptr<Event>>(&found->second);
  if (given == nullptr || *given == nullptr)
    return error(Code::kTypeMismatch, "\"event\" of a request is not a std::shared_ptr<Event>");
  std::shared_ptr<Event> event = *given;
  if (event->used_.exchange(true))
    return error(Code::kWrongState, "this event was used before; an event is for one request");
  request.erase(found);  // The event holds its ticket, and the ticket would hold the event.
  return event;
}

/// Nothing here needs memory but the requests themselves.
void Pipeline::run_all(std::span<Dict> requests, const RequestOptions& options,
                       std::span<Status> answers, std::span<TicketPtr> tickets) const noexcept {
  if (node_ != nullptr && node_->forked()) {
    std::ranges::fill(answers, Status(forked_failure()));
    return;
  }
  const bool nested = node_ != nullptr && node_->core != nullptr && node_->core->inside();
  if (node_ == nullptr) {
    std::ranges::fill(answers, Status(empty_failure("run()")));
    return;
  }
  if (nested) {
    std::ranges::fill(answers, error(Code::kWrongState,
                                     "run() in forward() of the same pipeline would deadlock; "
                                     "submit() does not wait"));
    return;
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto event = Event::take_from(requests[i]);
    if (!event) {
      answers[i] = event.error();
      continue;
    }
    TicketPtr ticket = submit_or_starve(*node_, std::move(requests[i]), options, nullptr);
    requests[i].clear();
    if (*event == nullptr) {
      tickets[i] = std::move(ticket);
      continue;
    }
    (*event)->ticket_.state_ = std::move(ticket);
    // Last: who sees it reads the ticket without a lock.
    (*event)->given_.store(true, std::memory_order_release);
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (tickets[i] == nullptr) continue;
    answers[i] = tickets[i]->wait(kNever);
    // Many share this ticket, which has no values: theirs went when no ticket could be made.
    if (tickets[i] == starved->ticket) continue;
    if (auto values = tickets[i]->take()) requests[i] = std::move(*values);
  }
}

Ticket Pipeline::submit(Dict request, const RequestOptions& options,
                        std::function<void(const Ticket&)> on_done) const {
  Ticket ticket;
  Status wrong;
  if (node_ == nullptr)
    wrong = empty_failure("submit()");
  else if (node_->forked())
    wrong = forked_failure();
  else if (request.contains(kEvent))
    wrong = error(Code::kInvalidArgument,
                  "a request of submit() has an \"event\", which only run() takes; wait for the "
                  "ticket, or call run()");
  if (!wrong.ok()) {
    // It has its answer, and nothing of a node: the callback is called here, in the caller's
    // thread.
    ticket.state_ = refused(std::move(wrong), std::move(request));
    if (on_done) run_callback("scheduler", "a callback of a request", on_done, ticket);
    return ticket;
  }
  if (node_->core != nullptr) {
    ticket.state_ = submit_or_starve(*node_, std::move(request), options, std::move(on_done));
    return ticket;
  }
  ticket.state_ = submit_or_starve(*node_, std::move(request), options, nullptr);
  if (on_done) run_callback("scheduler", "a callback of a request", on_done, ticket);
  return ticket;
}

std::uint32_t Pipeline::min() const noexcept {
  return node_ == nullptr || node_->forked() ? 0 : node_->scheduler->min();
}

std::uint32_t Pipeline::max() const noexcept {
  if (node_ == nullptr || node_->forked()) return 0;
  return node_->core == nullptr ? node_->scheduler->max() : node_->core->largest_request();
}

Topology Pipeline::topology() const {
  return !has_core(node_) ? Topology{} : node_->core->topology();
}

Status Pipeline::reconfigure(const Config& changes) const {
  CORELANE_ASSIGN(NodeCore* const core, core_for(node_, "reconfigure()"));
  return core->reconfigure([&](const NodeSettings& settings) {
    return change_settings(settings, changes, node_->registry);
  });
}

Status Pipeline::drain(TimePoint until) const {
  CORELANE_ASSIGN(NodeCore* const core, core_for(node_, "drain()"));
  return core->drain(until);
}

Status Pipeline::shutdown(Shutdown how, TimePoint until) const {
  CORELANE_ASSIGN(NodeCore* const core, core_for(node_, "shutdown()"));
  return core->shutdown(how, until);
}

Statistics Pipeline::statistics() const {
  return !has_core(node_) ? Statistics{} : node_->core->statistics();
}

std::string Pipeline::prometheus_text() const {
  return !has_core(node_) ? std::string() : prometheus_of(statistics(), node_->name);
}

std::vector<BatchRecord> Pipeline::records() const {
  return !has_core(node_) ? std::vector<BatchRecord>{} : node_->core->records();
}

std::string Pipeline::chrome_trace() const {
  return !has_core(node_) ? std::string() : node_->core->chrome_trace(node_->name);
}

Result<std::string> Pipeline::why(std::uint64_t id) const {
  CORELANE_ASSIGN(NodeCore* const core, core_for(node_, "why()"));
  return core->why(id);
}

}  // namespace corelane::scheduler
