#include "corelane/session/session.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "base/guard.h"
#include "base/later.h"
#include "base/leaked.h"
#include "base/sync.h"
#include "corelane/device/device.h"
#include "dispatch/interrupt_poll.h"
#include "session/binding_state.h"
#include "session/session_create.h"
#include "session/tasks/batch_call.h"
#include "session/tasks/control_state.h"
#include "session/tasks/future_state.h"
#include "session/tasks/session_batch.h"
#include "session/tasks/session_core.h"
#include "session/tasks/session_parts.h"

namespace corelane {
namespace session {

/// What the handles of a session share; the last one closes it.
class SessionOwner {
 public:
  explicit SessionOwner(std::shared_ptr<SessionCore> c) : core(std::move(c)) {}
  ~SessionOwner() {
    if (core->forked()) {
      // Its threads and locks belong to the parent: nothing of it can be taken apart here.
      static_cast<void>(new std::shared_ptr<SessionCore>(core));
      return;
    }
    static_cast<void>(core->close(kNever));
  }

  const std::shared_ptr<SessionCore> core;

  Mutex mutex{LockRank::kLeaf};
  // Calls whose outputs run_pipeline() has not returned, the oldest first.
  std::deque<Future> pipeline CORELANE_GUARDED_BY(mutex);
  std::size_t depth CORELANE_GUARDED_BY(mutex) = 0;
};

}  // namespace session

using session::Call;
using session::Caller;
using session::SessionCore;

namespace {

TimePoint deadline_of(const Clock& clock, Duration timeout) { return later(clock.now(), timeout); }

Result<std::shared_ptr<SessionCore>> usable_core(
    const std::shared_ptr<session::SessionOwner>& owner) {
  if (owner == nullptr)
    return error(Code::kWrongState, "this session was never made; use Session::create");
  CORELANE_TRY(owner->core->usable());
  return owner->core;
}

Result<Call> make_call(const SessionCore& core, const Feed& feed, const CallOptions& options) {
  Call call;
  CORELANE_ASSIGN(call.inputs, core.model().check_feed(feed));
  CORELANE_TRY(core.model().choose_outputs(options.outputs, call));
  return call;
}

/// `weights_from`: of the session to take weights from; null where no such session was named.
Result<std::shared_ptr<session::SessionOwner>> make_owner(
    const session::ModelSource& source, const SessionOptions& options,
    const std::shared_ptr<session::SessionOwner>* weights_from) {
  std::shared_ptr<const Program> weights;
  if (weights_from != nullptr && *weights_from != nullptr)
    weights = (*weights_from)->core->first_program();
  if (weights_from != nullptr && weights == nullptr)
    return error(Code::kWrongState, "the session to take weights from is closed or was never made");
  CORELANE_ASSIGN(auto parts, session::make_parts(source, options, std::move(weights)));
  auto core = std::make_shared<SessionCore>(std::move(parts));
  session::remember(core);
  return std::make_shared<session::SessionOwner>(std::move(core));
}

/// What a session that was never made shows.
template <class T>
const T& none() {
  static Leaked<const T> value;
  return *value;
}

}  // namespace

CallControl::CallControl() : state_(std::make_shared<session::ControlState>()) {}

void CallControl::terminate() {
  std::vector<std::pair<std::weak_ptr<SessionCore>, std::weak_ptr<session::SessionTask>>> calls;
  {
    const MutexLock lock(state_->mutex);
    state_->terminated.store(true, std::memory_order_release);
    // Cancelled without the lock, which a starting call takes. A call that comes later sees the
    // flag.
    calls.swap(state_->calls);
  }
  for (const auto& [weak_core, weak_task] : calls) {
    const auto core = weak_core.lock();
    const auto task = weak_task.lock();
    if (core != nullptr && task != nullptr) core->cancel(task, true);
  }
}

void CallControl::reset() { state_->terminated.store(false, std::memory_order_release); }

bool CallControl::terminated() const noexcept {
  return state_->terminated.load(std::memory_order_acquire);
}

Result<Session> Session::create(const std::filesystem::path& path, const SessionOptions& options,
                                const Session* weights_from) {
  return no_throw("making a session", [&]() -> Result<Session> {
    Session session;
    CORELANE_ASSIGN(session.owner_, make_owner({path, nullptr}, options,
                                               weights_from ? &weights_from->owner_ : nullptr));
    return session;
  });
}

Result<Session> Session::create(ByteSpan bytes, const SessionOptions& options,
                                const Session* weights_from) {
  if (bytes.empty()) return error(Code::kInvalidArgument, "model data must not be empty");
  return no_throw("making a session", [&]() -> Result<Session> {
    const auto copy = std::make_shared<const ByteVector>(bytes.begin(), bytes.end());
    Session session;
    CORELANE_ASSIGN(session.owner_, make_owner({{}, copy}, options,
                                               weights_from ? &weights_from->owner_ : nullptr));
    return session;
  });
}

Result<Outputs> Session::run(const Feed& feed, const CallOptions& options) {
  CORELANE_ASSIGN(const auto core, usable_core(owner_));
  CORELANE_ASSIGN(Call call, make_call(*core, feed, options));
  return core->run(std::move(call), options);
}

Status Session::run(IoBinding& binding, const CallOptions& options) {
  CORELANE_ASSIGN(const auto core, usable_core(owner_));
  if (binding.state_ == nullptr || !session::is_of(*binding.state_, core))
    return error(Code::kInvalidArgument, "the binding is not of this session; use io_binding()");
  session::BindingState& state = *binding.state_;
  // Before anything can fail: the results of the run before must not pass for this one's.
  Outputs results = std::exchange(state.results, {});
  const auto missing = std::ranges::find(state.has_input, false);
  if (missing != state.has_input.end()) {
    return error(Code::kInvalidArgument, "input '{}' is not bound; call bind_input for it",
                 core->model().native_inputs()[missing - state.has_input.begin()].name);
  }
  CORELANE_TRY(core->model().check_shapes(state.call->inputs));
  if (!options.outputs.empty()) {
    return error(Code::kInvalidArgument,
                 "a run with a binding gives the bound outputs; leave CallOptions::outputs empty");
  }
  // Results whose shapes the run tells are written into the call: those of this run alone.
  Call& bound = *state.call;
  if (bound.outputs.empty() || !core->model().has_fixed_results() || state.running != nullptr) {
    Call call = bound;
    if (call.outputs.empty()) CORELANE_TRY(core->model().choose_outputs({}, call));
    results.clear();
    CORELANE_ASSIGN(state.results, core->run(std::move(call), options));
    return {};
  }
  if (!state.same_results) results.clear();
  state.same_results = std::ranges::all_of(bound.outputs, &session::CallOutput::given);
  const session::BoundRun run(state);
  CORELANE_TRY(core->run_bound(bound, options, results));
  state.results = std::move(results);
  return {};
}

Result<std::uint64_t> Session::run_async(const Feed& feed, RunCallback callback,
                                         const CallOptions& options) {
  CORELANE_ASSIGN(const auto core, usable_core(owner_));
  if (!callback) return error(Code::kInvalidArgument, "run_async needs a callback; or use submit");
  CORELANE_ASSIGN(Call call, make_call(*core, feed, options));
  CORELANE_ASSIGN(const auto id,
                  core->run_async(std::move(call), std::move(callback), options, true));
  return *id;
}

Result<std::optional<std::uint64_t>> Session::try_run_async(const Feed& feed, RunCallback callback,
                                                            const CallOptions& options) {
  CORELANE_ASSIGN(const auto core, usable_core(owner_));
  if (!callback) return error(Code::kInvalidArgument, "try_run_async needs a callback");
  CORELANE_ASSIGN(Call call, make_call(*core, feed, options));
  return core->run_async(std::move(call), std::move(callback), options, false);
}

Result<Future> Session::submit(const Feed& feed, const CallOptions& options) {
  CORELANE_ASSIGN(const auto core, usable_core(owner_));
  CORELANE_ASSIGN(Call call, make_call(*core, feed, options));
  Future future;
  CORELANE_ASSIGN(future.state_, core->submit(std::move(call), options, true));
  return future;
}

Result<std::optional<Future>> Session::try_submit(const Feed& feed, const CallOptions& options) {
  CORELANE_ASSIGN(const auto core, usable_core(owner_));
  CORELANE_ASSIGN(Call call, make_call(*core, feed, options));
  Future future;
  CORELANE_ASSIGN(future.state_, core->submit(std::move(call), options, false));
  if (future.state_ == nullptr) return std::optional<Future>();
  return std::optional<Future>(std::move(future));
}

Session::Awaitable Session::run_awaitable(const Feed& feed, const CallOptions& options) {
  return Awaitable(submit(feed, options));
}

Result<Outputs> Session::run_batch(const Feed& feed, const CallOptions& options) {
  CORELANE_ASSIGN(const auto core, usable_core(owner_));
  CORELANE_ASSIGN(auto inputs, core->model().check_feed(feed, true));
  CORELANE_ASSIGN(const auto future, session::submit_batch(*core, std::move(inputs), options,
                                                           Caller::kWaits, nullptr));
  if (future->wait(options.interrupted)) return future->take();
  if (const auto batch = future->batch.lock()) session::cancel_batch(*core, *batch);
  return error(dispatch::interrupted_status());
}

Result<Future> Session::submit_batch(const Feed& feed, const CallOptions& options) {
  CORELANE_ASSIGN(const auto core, usable_core(owner_));
  CORELANE_ASSIGN(auto inputs, core->model().check_feed(feed, true));
  Future future;
  CORELANE_ASSIGN(future.state_, session::submit_batch(*core, std::move(inputs), options,
                                                       Caller::kGoesOn, nullptr));
  return future;
}

Result<std::uint64_t> Session::run_batch_async(const Feed& feed, RunCallback callback,
                                               const CallOptions& options) {
  CORELANE_ASSIGN(const auto core, usable_core(owner_));
  if (!callback) return error(Code::kInvalidArgument, "run_batch_async needs a callback");
  CORELANE_ASSIGN(auto inputs, core->model().check_feed(feed, true));
  CORELANE_ASSIGN(const auto future, session::submit_batch(*core, std::move(inputs), options,
                                                           Caller::kGoesOn, std::move(callback)));
  return future->task_id.load(std::memory_order_relaxed);
}

Result<std::optional<Outputs>> Session::run_pipeline(const Feed& feed, std::size_t depth,
                                                     bool reset, const CallOptions& options) {
  if (depth == 0)
    return error(Code::kInvalidArgument, "the depth of a pipeline is at least 1; 0 is run()");
  // First, so that `depth` calls are in flight while the oldest one is waited for.
  CORELANE_ASSIGN(Future newest, submit(feed, options));
  // They go after the lock: the last reference to a call's outputs may be theirs.
  std::deque<Future> dropped;
  Future oldest;
  {
    const MutexLock lock(owner_->mutex);
    if (reset || depth != owner_->depth) dropped.swap(owner_->pipeline);
    owner_->depth = depth;
    owner_->pipeline.push_back(newest);
    if (owner_->pipeline.size() <= depth) return std::optional<Outputs>();
    oldest = std::move(owner_->pipeline.front());
    owner_->pipeline.pop_front();
  }
  if (!oldest.state_->wait(options.interrupted)) {
    {
      // Undo this submission.
      const MutexLock lock(owner_->mutex);
      std::erase_if(owner_->pipeline, [&](const Future& f) { return f.state_ == newest.state_; });
      owner_->pipeline.push_front(std::move(oldest));
    }
    newest.cancel();
    return error(dispatch::interrupted_status());
  }
  CORELANE_ASSIGN(Outputs outputs, oldest.get());
  return std::optional<Outputs>(std::move(outputs));
}

std::vector<Result<Outputs>> Session::flush(const std::function<bool()>& interrupted) {
  std::vector<Result<Outputs>> results;
  if (owner_ == nullptr) return results;
  if (Status usable = owner_->core->usable(); !usable.ok()) {
    results.emplace_back(error(std::move(usable)));
    return results;
  }
  std::deque<Future> pending;
  {
    const MutexLock lock(owner_->mutex);
    pending.swap(owner_->pipeline);
  }
  for (const Future& future : pending) {
    if (future.state_->wait(interrupted)) continue;
    const MutexLock lock(owner_->mutex);
    // Put back as they were, before calls that came meanwhile.
    owner_->pipeline.insert(owner_->pipeline.begin(), pending.begin(), pending.end());
    return results;
  }
  for (const Future& future : pending) results.push_back(future.get());
  return results;
}

Status Session::drain() {
  Status first;
  for (const Result<Outputs>& result : flush())
    if (!result && first.ok()) first = result.error();
  return first;
}

Result<IoBinding> Session::io_binding() {
  CORELANE_ASSIGN(const auto core, usable_core(owner_));
  IoBinding binding;
  binding.state_ = std::make_shared<session::BindingState>();
  binding.state_->core = core;
  const std::size_t inputs = core->model().native_inputs().size();
  binding.state_->call = std::make_unique<Call>();
  binding.state_->call->inputs.resize(inputs);
  binding.state_->call->bound = true;
  binding.state_->has_input.resize(inputs);
  return binding;
}

Status Session::close(Duration timeout, const std::function<bool()>& interrupted) {
  CORELANE_ASSIGN(const auto core, usable_core(owner_));
  return core->close(deadline_of(*core->clock(), timeout), interrupted);
}

bool Session::closed() const noexcept { return owner_ == nullptr || owner_->core->closed(); }

bool Session::wait_callbacks(TimePoint until) {
  return owner_ == nullptr || owner_->core->wait_callbacks(until);
}

Status Session::close_all(Duration timeout) {
  const auto cores = session::living_sessions();
  // One time limit for all, on each of their clocks.
  std::map<std::shared_ptr<Clock>, TimePoint> deadlines;
  for (const auto& core : cores)
    deadlines.try_emplace(core->clock(), deadline_of(*core->clock(), timeout));
  Status first;
  for (const auto& core : cores) {
    const Status status = core->close(deadlines.at(core->clock()));
    if (first.ok()) first = status;
  }
  return first;
}

std::vector<TensorDesc> Session::inputs() const {
  return owner_ == nullptr ? std::vector<TensorDesc>() : owner_->core->model().shown_inputs();
}

std::vector<TensorDesc> Session::outputs() const {
  return owner_ == nullptr ? std::vector<TensorDesc>() : owner_->core->model().shown_outputs();
}

const ProgramDescription& Session::description() const {
  return owner_ == nullptr ? none<ProgramDescription>() : owner_->core->model().description();
}

std::vector<IoEntry> Session::native_inputs() const { return description().inputs; }
std::vector<IoEntry> Session::native_outputs() const { return description().outputs; }

const SessionOptions& Session::options() const {
  return owner_ == nullptr ? none<SessionOptions>() : owner_->core->options();
}

const std::vector<std::string>& Session::warnings() const {
  return owner_ == nullptr ? none<std::vector<std::string>>() : owner_->core->warnings();
}

const std::shared_ptr<device::Device>& Session::device() const {
  return owner_ == nullptr ? none<std::shared_ptr<device::Device>>() : owner_->core->device();
}

const std::shared_ptr<Clock>& Session::clock() const {
  return owner_ == nullptr ? real_clock() : owner_->core->clock();
}

SessionStatistics Session::statistics() const {
  return owner_ == nullptr ? SessionStatistics() : owner_->core->statistics();
}

device::EngineChoice Session::engine() const {
  return owner_ == nullptr ? device::EngineChoice() : owner_->core->engine();
}

device::MemoryFigures Session::memory() const {
  return owner_ == nullptr ? device::MemoryFigures() : owner_->core->memory();
}

Status Session::set_trace(std::size_t records_per_core) {
  CORELANE_ASSIGN(const auto core, usable_core(owner_));
  return core->device()->set_trace(records_per_core);
}

Result<std::vector<device::JobRecord>> Session::read_trace() const {
  CORELANE_ASSIGN(const auto core, usable_core(owner_));
  return core->device()->read_trace();
}

}  // namespace corelane
