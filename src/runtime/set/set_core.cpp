#include "runtime/set/set_core.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fork.h"
#include "base/guard.h"
#include "base/later.h"
#include "base/process/cpus.h"
#include "corelane/base/log.h"
#include "corelane/device/device.h"
#include "dispatch/awaited.h"
#include "dispatch/callback_thread.h"

namespace corelane::runtime {
namespace {

constexpr std::size_t kMostHandles = 65536;
constexpr std::uint32_t kMostRetries = 100;
/// The most replays of one inference: else a device that it makes lost would never let it end.
constexpr std::uint32_t kMostReplays = 8;
/// A short inference is over by then.
constexpr Duration kSpin = std::chrono::microseconds(20);
/// For so long a thread that waits forever looks out for others that may release a handle.
constexpr Duration kLonely = std::chrono::seconds(2);

Status check_options(const Program& program, const SetOptions& options) {
  if (options.size == 0 || options.activations == 0 || options.size > kMostHandles ||
      options.activations > kMostHandles / options.size)
    return error(Code::kInvalidArgument,
                 "a set of {} handles for each of {} activations; there are 1 to {} in all",
                 options.size, options.activations, kMostHandles);
  if (options.attempt_time && *options.attempt_time < Duration{0})
    return error(Code::kInvalidArgument, "the time of an attempt is {} ns; 0 or more is allowed",
                 options.attempt_time->count());
  if (options.retries > kMostRetries)
    return error(Code::kInvalidArgument, "{} retries; at most {} are allowed", options.retries,
                 kMostRetries);
  if (options.room_time < Duration{0})
    return error(Code::kInvalidArgument, "the time for room is {} ns; 0 or more is allowed",
                 options.room_time.count());
  if (options.priority < -128 || options.priority > 127)
    return error(Code::kInvalidArgument, "priority {}; -128 to 127 are allowed", options.priority);
  CORELANE_TRY(options.cores.check(program.device()->info().cores.size()));
  for (const std::string& name : options.partial_inputs) {
    std::string known;
    for (const IoEntry& input : program.description().inputs)
      known += (known.empty() ? "'" : ", '") + input.desc.name + "'";
    if (known.find("'" + name + "'") == std::string::npos)
      return error(Code::kInvalidArgument, "partial_inputs names '{}'; the inputs are {}", name,
                   known.empty() ? "none" : known)
          .with(Detail::kGiven, name)
          .with(Detail::kAllowed, known);
  }
  return {};
}

/// How long a replay that found no room waits before it tries again.
constexpr Duration kRoomStep = std::chrono::milliseconds(5);

std::shared_ptr<dispatch::CallbackThread> thread_named(const char* name) {
  return std::make_shared<dispatch::CallbackThread>(real_clock(), name, "runtime");
}

/// The threads of the process that serve all sets.
struct SetThreads {
  /// Replays inferences that found no room at first.
  std::shared_ptr<dispatch::CallbackThread> replay = thread_named("corelane-replay");
  /// Frees sets whose last reference was dropped by a thread that a job waits for.
  std::shared_ptr<dispatch::CallbackThread> end = thread_named("corelane-end");
};

std::string failures_text(const SureVector<Status>& failures) {
  std::string text;
  for (std::size_t i = 0; i < failures.size(); ++i)
    text += fmt::format("{}attempt {}: {}", i == 0 ? "" : "; ", i + 1, failures[i].to_string());
  return text;
}

}  // namespace

Result<std::shared_ptr<SetCore>> SetCore::create(const Program& program,
                                                 const SetOptions& options) {
  if (program.device() == nullptr)
    return error(Code::kWrongState, "a set needs a program that is loaded; see Program::load");
  CORELANE_TRY(check_options(program, options));
  std::shared_ptr<SetCore> core(new SetCore(program, options), &SetCore::end);
  std::vector<Activation>& activations = core->activations_;
  for (std::size_t i = 0; options.activate && i < options.activations; ++i) {
    CORELANE_ASSIGN(Activation made, Activation::create(program, *options.activate));
    activations.push_back(std::move(made));
  }
  // In turn, so that handles that are acquired one after another are of all activations.
  for (std::size_t i = 0; i < core->items_.size(); ++i) {
    Item& item = core->items_[i];
    CORELANE_ASSIGN(item.context, activations.empty()
                                      ? program.new_context()
                                      : activations[i % activations.size()].new_context());
    if (options.room_time > Duration{0}) item.given_up = std::make_shared<std::atomic<bool>>(false);
  }
  if (!options.replay) return core;
  device::ObserverOptions watch;
  watch.on_event = [weak = core->weak_from_this()](const device::Event& event) {
    if (event.kind != device::EventKind::kBack) return;
    if (const auto alive = weak.lock()) alive->replay();
  };
  CORELANE_ASSIGN(core->observation_, program.device()->observe(std::move(watch)));
  return core;
}

SetCore::SetCore(const Program& program, SetOptions options)
    : program_(program),
      options_(std::move(options)),
      clock_(program.device()->clock()),
      process_(fork_count()),
      records_(std::make_shared<SetRecords>(clock_)),
      table_(options_.size * options_.activations, options_.in_order),
      items_(options_.size * options_.activations) {}

/// The last reference may go in the device's callback for the last inference. The end of a program
/// waits for threads that may wait for jobs, and that of an owner of memory is a user's code.
void SetCore::end(SetCore* core) noexcept {
  std::unique_ptr<SetCore> ended(core);
  if (!dispatch::thread_is_awaited()) return;
  std::function<void()> job = [last = ended.release()] {
    const std::unique_ptr<SetCore> ends(last);
  };
  // Without a thread the set leaks: to free it in this thread could block forever.
  const Status posted = no_throw("freeing an inference set",
                                 [&] { return per_process<SetThreads>().end->post(job); });
  if (!posted.ok()) log::error("runtime", "an inference set is not freed: {}", posted.message());
}

Status SetCore::check_process() const {
  if (fork_count() == process_) return {};
  return error(Code::kWrongState,
               "this inference set was made before fork(); its threads do not exist in the child: "
               "open the device and make a set there");
}

Status SetCore::check(const SetHandle& handle) const {
  CORELANE_TRY(check_process());
  if (handle.core_.get() == this) return {};
  return error(Code::kInvalidArgument, "the handle is of {} set; use one that this set gave",
               handle.core_ == nullptr ? "no" : "another");
}

Status SetCore::ended() const {
  return error(Code::kCancelled, "the inference set of program '{}' was shut down",
               program_.description().name);
}

void SetCore::expect_other_users() {
  const MutexLock lock(mutex_);
  many_users_ = true;
}

/// One thread that acquires, and collects later, waits for itself once all handles are out.
void SetCore::note_user() {
  const std::thread::id me = std::this_thread::get_id();
  if (user_ == std::thread::id()) user_ = me;
  if (user_ != me) many_users_ = true;
}

bool SetCore::nobody_else_acts() const {
  return !many_users_ && calling_ == 0 && table_.figures().in_flight == 0 && deliveries_.empty() &&
         !fd_;
}

Result<SetHandle> SetCore::acquire(TimePoint until) {
  CORELANE_TRY(check_process());
  if (parked_ != 0) replay();
  MutexLock lock(mutex_);
  note_user();
  TimePoint lonely = kNever;
  for (bool in_time = true;;) {
    if (ended_) return error(ended());
    if (const auto handle = table_.acquire()) return SetHandle(shared_from_this(), *handle);
    const SetFigures& now = table_.figures();
    if (!in_time && until != kNever)
      return error(Code::kTimeout,
                   "no handle became available: {} in flight, {} completed, {} held", now.in_flight,
                   now.completed, now.held);
    if (until == kNever && !nobody_else_acts()) lonely = kNever;
    if (until == kNever && nobody_else_acts()) {
      if (lonely == kNever) lonely = later(clock_->now(), kLonely);
      if (clock_->now() >= lonely)
        return error(
            Code::kWrongState,
            "all {} handles are out ({} completed, {} held), and this thread, the only one "
            "that uses the set, waits for one: collect and release first, collect in "
            "another thread, or give a time limit",
            items_.size(), now.completed, now.held);
    }
    in_time = clock_->wait_until(lock.native(), available_, std::min(until, lonely));
  }
}

Status SetCore::submit(const SetHandle& handle, std::uint64_t id, SetCallback done) {
  CORELANE_TRY(check(handle));
  const std::size_t index = handle.index();
  const bool observed = records_->on();
  const TimePoint now = observed ? clock_->now() : TimePoint{};
  {
    const MutexLock lock(mutex_);
    note_user();
    if (ended_) return ended();
    CORELANE_TRY(table_.submit(index, id));
    Item& item = items_[index];
    item.id = id;
    item.attempts = item.losses = item.retries = 0;
    item.failures.clear();
    item.cancelled = false;
    if (item.given_up) item.given_up->store(false);
    item.submitting = true;
    // The callback of the inference before goes with `done`, after the lock.
    item.done.swap(done);
    item.has_status = false;
    item.observed = observed;
    if (observed) {
      item.record = {};
      item.record.id = id;
      item.record.handle = index;
      item.record.in_flight = table_.figures().in_flight;
      item.record.submitted = now;
    }
  }
  Status refused = no_throw("submitting an inference", [&] {
    const bool waits = options_.room_time > Duration{0};
    return start(index, waits ? later(clock_->now(), options_.room_time) : TimePoint{});
  });
  if (refused.ok()) return {};
  {
    const MutexLock lock(mutex_);
    if (refused.code() == Code::kBusy) refused = why_no_room(items_[index], std::move(refused));
    table_.refuse(index);
    note_ended(index);
    items_[index].done.swap(done);
    items_[index].status = refused;
    items_[index].has_status = true;
    // What completed after it may be the next in order.
    if (options_.in_order) queue_deliveries();
    update_fd();
    // Threads that wait for this id, or for the end of what is in flight, look again.
    completed_.notify_all();
    idle_.notify_all();
    available_.notify_all();
  }
  deliver({});
  return refused;
}

Status SetCore::why_no_room(const Item& item, Status busy) const {
  if (ended_) return ended();
  if (!item.cancelled || item.given_up == nullptr) return busy;
  return error(Code::kCancelled, "inference {} was cancelled while it waited for room", item.id);
}

Status SetCore::start(std::size_t index, TimePoint room_until) {
  if (options_.attempt_time == Duration{0}) {
    finished(index, error(Code::kTimeout, "the time of an attempt is 0: none can begin"));
    return {};
  }
  RunOptions run;
  run.cores = options_.cores;
  run.priority = options_.priority;
  run.room_until = room_until;
  if (room_until != TimePoint{}) run.give_up = items_[index].given_up;
  run.timeout = options_.attempt_time.value_or(Duration{0});
  // Not where a user's callback follows, which may submit again, or take long.
  const bool no_callback = !items_[index].done && !options_.in_order;
  // To hand a brief inference to another thread takes longer than it does.
  run.here_if_brief = no_callback && !dispatch::thread_is_awaited();
  // A replay may call back for other inferences.
  run.brief_callbacks = no_callback && !options_.replay;
  Context context = items_[index].context;
  CORELANE_ASSIGN(Inference inference, context.submit(run));
  bool cancelled = false;
  {
    const MutexLock lock(mutex_);
    Item& item = items_[index];
    item.inference = inference;
    item.submitting = false;
    cancelled = item.cancelled || ended_;
  }
  if (cancelled) inference.cancel();
  inference.on_done(sure_once<void(const Status&)>(
      [core = shared_from_this(), index](const Status& status) { core->finished(index, status); }));
  return {};
}

bool SetCore::may_retry(const Item& item, const Status& status) const {
  const bool worth_it = status.code() == Code::kTimeout || status.code() == Code::kDeviceReset;
  return worth_it && !item.cancelled && !ended_ && item.retries < options_.retries;
}

bool SetCore::park(Item& item, const Status& status) {
  if (!options_.replay || status.code() != Code::kDeviceLost) return false;
  if (item.cancelled || ended_ || item.losses >= kMostReplays) return false;
  ++item.losses;
  ++parked_;
  item.parked = true;
  return true;
}

bool SetCore::unpark(Item& item, Status status) {
  if (!std::exchange(item.parked, false)) return false;
  --parked_;
  item.failures.push_back(std::move(status));
  return true;
}

void SetCore::replay() noexcept {
  while (parked_ != 0 && program_.device()->health() != device::Health::kLost) {
    SureVector<std::size_t> again;
    {
      const MutexLock lock(mutex_);
      for (const std::size_t index : table_.all_in_flight())
        if (std::exchange(items_[index].parked, false)) again.push_back(index);
      parked_ -= again.size();
    }
    if (again.empty()) return;
    bool room = true;
    for (const std::size_t index : again) room = start_again(index, true) && room;
    if (!room) return replay_later();
  }
}

/// Another client may fill the line first when the device is back: the replays try again then,
/// and do not fail with kBusy.
void SetCore::replay_later() noexcept {
  // Without a timer the next call of collect() or acquire() does it.
  const Status ignored = no_throw("replaying inferences", [&] {
    clock_->call_at(later(clock_->now(), kRoomStep), [weak = weak_from_this()] {
      // Not in the clock's thread, for which users' time limits wait.
      if (auto alive = weak.lock())
        per_process<SetThreads>().replay->post_or_call([last = std::move(alive)]() mutable {
          const dispatch::AwaitedScope other_sets_wait(true);
          const std::shared_ptr<SetCore> core = std::move(last);
          core->replay();
        });
    });
    return Status();
  });
}

bool SetCore::start_again(std::size_t index, bool replayed) noexcept {
  const Status refused = no_throw("a further attempt", [&] { return start(index, TimePoint{}); });
  if (refused.ok()) return true;
  {
    const MutexLock lock(mutex_);
    Item& item = items_[index];
    const bool waits = replayed && refused.code() == Code::kBusy && !item.cancelled && !ended_;
    if (waits) {
      ++parked_;
      item.parked = true;
      return false;
    }
    item.failures.push_back(refused);
    if (park(item, refused)) return true;
  }
  conclude(index, refused);
  return true;
}

void SetCore::finished(std::size_t index, const Status& status) noexcept {
  Inference attempt;  // May be the last reference to what it used: it goes after the lock.
  bool again = false;
  bool parked = false;
  bool told = false;
  Delivery delivery;
  const TimePoint now = records_->on() ? clock_->now() : TimePoint{};
  {
    const MutexLock lock(mutex_);
    Item& item = items_[index];
    ++item.attempts;
    if (!status.ok()) item.failures.push_back(status);
    std::swap(attempt, item.inference);
    if (item.observed) {
      item.record.job = attempt.record();
      item.record.run = attempt.stamps();
    }
    again = may_retry(item, status);
    if (again) ++item.retries;
    parked = park(item, status);
    told = !again && !parked && tells_failure(status);
    if (!again && !parked && !told) delivery = complete(index, status, now);
  }
  if (again)
    start_again(index, false);
  else if (told)
    conclude(index, status);
  else if (!parked)
    deliver(std::move(delivery));
  replay();  // The device may be back already.
}

/// One failure speaks for itself; of several, each is told.
Status SetCore::summary(const Item& item) const noexcept {
  if (item.failures.size() == 1) return item.failures.front();
  const std::string log = text_or_none([&] { return failures_text(item.failures); });
  return error(item.failures.back().code(), "inference {} of program '{}' failed: {}", item.id,
               program_.description().name, log);
}

/// Inferences that the end of the set cancels have not failed.
bool SetCore::tells_failure(const Status& status) const {
  return !status.ok() && options_.on_failure && !(ended_ && status.code() == Code::kCancelled);
}

void SetCore::conclude(std::size_t index, const Status& status) noexcept {
  Status failure;
  {
    const MutexLock lock(mutex_);
    if (tells_failure(status)) failure = summary(items_[index]);
  }
  // Before anybody has the result, and may end what the function uses.
  if (!failure.ok())
    run_callback("runtime", "on_failure of an inference set", options_.on_failure, failure);
  Delivery delivery;
  const TimePoint now = records_->on() ? clock_->now() : TimePoint{};
  {
    const MutexLock lock(mutex_);
    delivery = complete(index, status, now);
  }
  deliver(std::move(delivery));
}

SetCore::Delivery SetCore::complete(std::size_t index, const Status& status, TimePoint now) {
  Item& item = items_[index];
  item.status = status.ok() ? Status() : summary(item);
  item.has_status = true;
  note_completed(index, now);
  table_.complete(index);
  note_ended(index);
  completions_.fetch_add(1, std::memory_order_release);
  Delivery delivery;
  if (options_.in_order)
    queue_deliveries();
  else if (item.done)
    delivery = take(index);
  update_fd();
  completed_.notify_all();
  if (table_.figures().in_flight == 0) {
    idle_.notify_all();
    // Threads without a time limit look whether another one uses the set.
    available_.notify_all();
  }
  return delivery;
}

void SetCore::note_ended(std::size_t index) {
  const std::uint64_t number = table_.submission(index);
  bool last = false;
  for (IdleWait* const wait : idle_waits_)
    if (number <= wait->last && --wait->left == 0) last = true;
  if (last) idle_.notify_all();
}

SetCore::Delivery SetCore::take(std::size_t index) {
  table_.take(index);
  note_collected(index);
  return {std::exchange(items_[index].done, nullptr), SetHandle(shared_from_this(), index)};
}

void SetCore::queue_deliveries() {
  for (auto next = table_.next(); next && items_[*next].done; next = table_.next())
    deliveries_.push_back(take(*next));
}

void SetCore::deliver(Delivery one) noexcept {
  const auto call = [this](Delivery& delivery) {
    ++calling_;
    run_callback("runtime", "a callback of an inference set", delivery.first, delivery.second);
    if (--calling_ != 0) return;
    const MutexLock lock(mutex_);
    available_.notify_all();  // A thread that waits for a handle may be alone from now on.
  };
  if (one.first) call(one);
  while (options_.in_order) {
    Delivery next;
    {
      const MutexLock lock(mutex_);
      if (deliveries_.empty() || delivering_) return;
      delivering_ = true;
      next = std::move(deliveries_.front());
      deliveries_.pop_front();
    }
    call(next);
    const MutexLock lock(mutex_);
    delivering_ = false;
  }
}

/// In place of a thread of the device, which need not be woken then.
bool SetCore::run_one(std::optional<std::uint64_t> id) {
  for (std::size_t nth = 0;; ++nth) {
    Inference attempt;
    {
      const MutexLock lock(mutex_);
      if (ended_ || table_.next()) return false;
      const auto index = table_.in_flight(nth);
      if (!index) return false;
      if (id && items_[*index].id != *id) continue;
      attempt = items_[*index].inference;
    }
    if (attempt.run_here()) return true;
  }
}

void SetCore::spin_for_completion() {
  static const bool alone = process_cpus() < 2;
  if (alone || clock_->is_virtual() || spinning_.exchange(true)) return;
  const std::uint64_t before = completions_.load(std::memory_order_acquire);
  const bool waits = [&] {
    const MutexLock lock(mutex_);
    return !ended_ && table_.figures().in_flight != 0 && !table_.next();
  }();
  if (waits) {
    const TimePoint until = clock_->now() + kSpin;
    // The clock is read once for 32 looks: it costs more than they do.
    for (int looks = 1; completions_.load(std::memory_order_acquire) == before; ++looks)
      if (looks % 32 == 0 && clock_->now() >= until) break;
  }
  spinning_.store(false);
}

Result<SetHandle> SetCore::collect(std::optional<std::uint64_t> id, TimePoint until,
                                   bool in_flight) {
  CORELANE_TRY(check_process());
  if (parked_ != 0) replay();
  if (until == kNever && (options_.attempt_time || !run_one(id))) spin_for_completion();
  std::optional<std::size_t> found;
  {
    MutexLock lock(mutex_);
    note_user();
    for (bool in_time = true;;) {
      if (!ended_ && id && !table_.find(*id))
        return error(Code::kNotFound, "no inference with id {} is in flight or completed", *id);
      const SetFigures& now = table_.figures();
      if (!ended_ && in_flight && now.in_flight == 0 && now.completed == 0)
        return error(Code::kNotFound, "nothing is in flight or completed");
      found = id ? table_.collect(*id) : table_.collect();
      if (found) break;
      if (ended_) return error(ended());
      if (!in_time)
        return error(Code::kTimeout, "nothing to collect: {} in flight, {} held, {} available",
                     table_.figures().in_flight, table_.figures().held, table_.figures().available);
      in_time = clock_->wait_until(lock.native(), completed_, until);
    }
    note_collected(*found);
    if (options_.in_order) queue_deliveries();
    update_fd();
    completed_.notify_all();  // Another one may be the next in order; this one's id may be gone.
    if (deliveries_.empty()) return SetHandle(shared_from_this(), *found);
  }
  deliver({});
  return SetHandle(shared_from_this(), *found);
}

Status SetCore::release(const SetHandle& handle) {
  CORELANE_TRY(check(handle));
  const MutexLock lock(mutex_);
  note_user();
  CORELANE_TRY(table_.release(handle.index()));
  available_.notify_one();
  return {};
}

bool SetCore::cancel(std::uint64_t id) {
  if (!check_process().ok()) return false;
  const Status cancelled =
      error(Code::kCancelled, "inference {} was cancelled before it ran again", id);
  std::optional<std::size_t> index;
  Inference inference;
  bool was_parked = false;
  bool waits_for_room = false;
  {
    const MutexLock lock(mutex_);
    index = table_.find_in_flight(id);
    if (!index) return false;
    Item& item = items_[*index];
    item.cancelled = true;
    if (item.given_up) item.given_up->store(true);
    was_parked = unpark(item, cancelled);
    waits_for_room = item.submitting && item.given_up;
    inference = item.inference;
  }
  if (waits_for_room) return true;  // submit() cancels it where it got room.
  if (!was_parked) return inference.cancel();
  conclude(*index, cancelled);
  return true;
}

bool SetCore::drain(TimePoint until) {
  if (!check_process().ok()) return true;  // The work is the parent's.
  MutexLock lock(mutex_);
  while (table_.figures().in_flight != 0)
    if (!clock_->wait_until(lock.native(), idle_, until)) return table_.figures().in_flight == 0;
  return true;
}

Status SetCore::wait_idle(TimePoint until) {
  CORELANE_TRY(check_process());
  MutexLock lock(mutex_);
  IdleWait wait{table_.submissions(), table_.figures().in_flight};
  idle_waits_.push_back(&wait);
  bool in_time = true;
  while (!ended_ && wait.left != 0 && in_time)
    in_time = clock_->wait_until(lock.native(), idle_, until);
  std::erase(idle_waits_, &wait);
  if (ended_) return ended();
  if (wait.left == 0) return {};
  return error(Code::kTimeout, "{} inferences are in flight yet", wait.left);
}

void SetCore::shutdown() {
  if (!check_process().ok()) return;
  SureVector<Inference> attempts;
  SureVector<std::size_t> parked;
  {
    const MutexLock lock(mutex_);
    if (ended_) return;
    ended_ = true;
    for (const std::size_t index : table_.all_in_flight()) {
      if (items_[index].given_up) items_[index].given_up->store(true);
      attempts.push_back(items_[index].inference);
      if (unpark(items_[index], ended())) parked.push_back(index);
    }
    available_.notify_all();
    completed_.notify_all();
    idle_.notify_all();
  }
  for (Inference& one : attempts) one.cancel();
  for (const std::size_t index : parked) conclude(index, ended());
  // Not left to the last reference: a thread of the device may have it for a while yet.
  for (Activation& each : activations_) each.release();
}

Result<std::shared_ptr<device::Observation>> SetCore::observe(SetObserverOptions options) {
  CORELANE_TRY(check_process());
  {
    const MutexLock lock(mutex_);
    if (ended_) return error(ended());
  }
  return records_->observe(std::move(options));
}

void SetCore::note_completed(std::size_t index, TimePoint now) {
  Item& item = items_[index];
  if (!item.observed) return;
  item.record.attempts = item.attempts;
  item.record.code = item.status.code();
  item.record.completed = item.record.collected = now;
  records_->note(item.record, SetRecords::When::kCompleted);
}

void SetCore::note_collected(std::size_t index) {
  Item& item = items_[index];
  if (!std::exchange(item.observed, false)) return;
  item.record.collected = clock_->now();
  records_->note(item.record, SetRecords::When::kCollected);
}

SetFigures SetCore::figures() const {
  if (!check_process().ok()) return {};
  const MutexLock lock(mutex_);
  return table_.figures();
}

std::uint64_t SetCore::id(std::size_t index) const {
  const MutexLock lock(mutex_);
  return items_[index].id;
}

Status SetCore::status(std::size_t index) const {
  const MutexLock lock(mutex_);
  const Item& item = items_[index];
  if (item.has_status) return item.status;
  return error(Code::kWrongState,
               "handle {} has no result: its inference is in flight, or it was "
               "never submitted",
               index);
}

/// Frees the owner kept before after the lock is released.
void SetCore::keep(std::size_t index, std::shared_ptr<const void> owner) {
  const MutexLock lock(mutex_);
  items_[index].owner.swap(owner);
}

std::uint32_t SetCore::attempts(std::size_t index) const {
  const MutexLock lock(mutex_);
  return items_[index].attempts;
}

}  // namespace corelane::runtime
