#include "runtime/activation/turn_core.h"

#include <bit>
#include <utility>

#include "base/fork.h"
#include "corelane/device/device.h"
#include "corelane/device/residence.h"

namespace corelane::runtime {
namespace {

Status check_turn(const TurnOptions& options) {
  constexpr double kMostWeight = 1e6;
  if (options.threshold == 0)
    return error(Code::kInvalidArgument, "a threshold of 0 jobs; 1 is the least");
  if (options.timeout < Duration{0})
    return error(Code::kInvalidArgument, "the timeout of a turn is {} ns; 0 means none",
                 options.timeout.count());
  if (options.threshold > 1 && options.timeout == Duration{0})
    return error(Code::kInvalidArgument,
                 "a threshold of {} jobs without a timeout: the last jobs would wait forever; "
                 "give a timeout",
                 options.threshold);
  if (options.priority < -128 || options.priority > 127)
    return error(Code::kInvalidArgument, "priority {}; -128 to 127 are allowed", options.priority);
  // Written so that a NaN is refused.
  if (!(options.weight > 0 && options.weight <= kMostWeight))
    return error(Code::kInvalidArgument, "the weight {}; above 0 and up to {} is allowed",
                 options.weight, kMostWeight);
  return {};
}

void signal_all(const std::vector<std::shared_ptr<device::Fence>>& fences) {
  for (const auto& fence : fences) fence->signal();
}

}  // namespace

TurnCore::TurnCore(std::shared_ptr<device::Device> device, const device::CoreSet& cores,
                   const TurnGroupOptions& options)
    : device_(std::move(device)),
      clock_(device_->clock()),
      cores_(cores),
      process_(fork_count()),
      thread_(std::make_shared<dispatch::CallbackThread>(clock_, "corelane-turns", "runtime")),
      table_(options.slice, options.longest_wait) {}

/// Nothing waits: each job keeps the group alive. The last reference may go in its own thread.
TurnCore::~TurnCore() {
  if (fork_count() != process_) return;
  thread_->stop_and_join();
}

Result<device::CoreSet> TurnCore::choose(const device::CoreSet& asked) const {
  const std::uint64_t among = cores_.bits() & asked.among();
  const bool named = asked.is_mask() || asked.kind() == device::CoreSet::Kind::kAnyOf;
  const auto there = static_cast<std::size_t>(std::popcount(among));
  if (asked.empty() || there < asked.count() || (named && among != asked.among()))
    return error(Code::kInvalidArgument,
                 "core set '{}' cannot be had of a turn group on the cores '{}'; ask for some of "
                 "these",
                 asked.to_string(), cores_.to_string());
  if (asked.count() == 0 || asked.count() == there) return device::CoreSet::mask(among);
  std::uint64_t held = 0;
  for (const device::Holding& one : device_->holdings())
    if (one.residency == device::Residency::kExclusive) held |= one.cores.bits();
  const MutexLock lock(mutex_);
  const auto rank = [&](std::size_t core) CORELANE_REQUIRES(mutex_) {
    return std::pair((held >> core & 1) != 0, table_.members_on(core));
  };
  std::uint64_t chosen = 0;
  for (std::size_t n = 0; n < asked.count(); ++n) {
    std::size_t best = device::CoreSet::kMaxCores;
    for (std::uint64_t rest = among & ~chosen; rest != 0; rest &= rest - 1) {
      const auto core = static_cast<std::size_t>(std::countr_zero(rest));
      if (best == device::CoreSet::kMaxCores || rank(core) < rank(best)) best = core;
    }
    chosen |= std::uint64_t{1} << best;
  }
  return device::CoreSet::mask(chosen);
}

/// In a forked child the mutex may be held by a thread that does not exist there: callers look
/// before they take it.
Status TurnCore::check() const {
  if (!ended_) return {};
  return error(Code::kCancelled, "the turn group on the cores '{}' was shut down",
               cores_.to_string());
}

namespace {

Status forked() {
  return error(Code::kWrongState,
               "this turn group was made before fork(); open the device and make one in the child");
}

}  // namespace

Result<std::size_t> TurnCore::join(const device::CoreSet& cores, const TurnOptions& options) {
  if (fork_count() != process_) return error(forked());
  CORELANE_TRY(check_turn(options));
  const MutexLock lock(mutex_);
  CORELANE_TRY(check());
  return table_.join(cores.bits(), options);
}

void TurnCore::leave(std::size_t member) {
  if (fork_count() != process_) return;
  Fences go;
  {
    const MutexLock lock(mutex_);
    table_.leave(member);
    go = decide(0, nullptr);
  }
  signal_all(go);
}

Result<std::uint64_t> TurnCore::enter(std::size_t member, device::Submission& job) {
  if (fork_count() != process_) return error(forked());
  Fences go;
  // Before the lock, and in vain where the job goes at once.
  auto fence = std::make_shared<device::Fence>(clock_);
  bool goes = false;
  std::uint64_t number = 0;
  {
    const MutexLock lock(mutex_);
    CORELANE_TRY(check());
    number = ++last_job_;
    table_.arrive(member, number, job.priority, clock_->now());
    go = decide(number, &goes);
    if (!goes) fences_.emplace(number, fence);
  }
  signal_all(go);
  if (!goes) job.wait.push_back(std::move(fence));
  return number;
}

void TurnCore::end(std::size_t member, std::uint64_t job, const device::JobRecord& record) {
  if (fork_count() != process_) return;
  Fences go;
  {
    const MutexLock lock(mutex_);
    // There is one where the job ended before its turn, by a deadline or because it was cancelled.
    fences_.erase(job);
    table_.end(member, job, record);
    go = decide(0, nullptr);
  }
  signal_all(go);
}

TurnCore::Fences TurnCore::decide(std::uint64_t entering, bool* goes) {
  Fences go;
  // Once it has ended, jobs that wait were failed: none goes any more.
  if (ended_) return go;
  for (const std::uint64_t job : table_.decide(clock_->now())) {
    if (job == entering) {
      *goes = true;
      continue;
    }
    const auto place = fences_.find(job);
    go.push_back(std::move(place->second));
    fences_.erase(place);
  }
  watch();
  return go;
}

/// A candidate may come of time alone, by its timeout. An earlier timer that is left finds nothing
/// to do.
void TurnCore::watch() {
  const TimePoint due = table_.next_due();
  if (due >= due_) return;
  due_ = due;
  clock_->call_at(due, [weak = weak_from_this()] {
    const auto alive = weak.lock();
    if (alive == nullptr) return;
    // A fence that is signalled may have a job's inputs copied: not in the thread of a real clock.
    if (alive->clock_->is_virtual())
      alive->time_passed();
    else
      alive->thread_->post_or_call([alive] { alive->time_passed(); });
  });
}

void TurnCore::time_passed() {
  if (fork_count() != process_) return;
  Fences go;
  {
    const MutexLock lock(mutex_);
    due_ = kNever;
    go = decide(0, nullptr);
  }
  signal_all(go);
}

TurnFigures TurnCore::figures(std::size_t member) const {
  if (fork_count() != process_) return {};
  const MutexLock lock(mutex_);
  return table_.figures(member);
}

void TurnCore::shutdown() {
  if (fork_count() != process_) return;
  std::unordered_map<std::uint64_t, std::shared_ptr<device::Fence>> waiting;
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    waiting.swap(fences_);
  }
  const Status ended = error(Code::kCancelled,
                             "the turn group on the cores '{}' was shut down while the job waited "
                             "for its turn",
                             cores_.to_string());
  for (const auto& [job, fence] : waiting) fence->signal(ended);
}

}  // namespace corelane::runtime

namespace corelane {

Result<TurnGroup> TurnGroup::create(std::shared_ptr<device::Device> device,
                                    const TurnGroupOptions& options) {
  if (device == nullptr)
    return error(Code::kInvalidArgument, "a turn group needs a device; see Program::device()");
  const std::size_t count = device->info().cores.size();
  const bool all = options.cores.kind() == device::CoreSet::Kind::kPlatform;
  if (!all && !options.cores.is_mask())
    return error(Code::kInvalidArgument,
                 "a turn group on the cores '{}'; name them, such as '0,1', or use 'platform' for "
                 "all",
                 options.cores.to_string());
  CORELANE_TRY(options.cores.check(count));
  if (options.slice <= Duration{0} || options.longest_wait <= Duration{0})
    return error(Code::kInvalidArgument,
                 "a turn group with slices of {} ns and a longest wait of {} ns; both are above 0",
                 options.slice.count(), options.longest_wait.count());
  const device::CoreSet cores = all ? device::CoreSet::first(count) : options.cores;
  return TurnGroup(std::make_shared<runtime::TurnCore>(std::move(device), cores, options));
}

device::CoreSet TurnGroup::cores() const noexcept {
  return core_ == nullptr ? device::CoreSet::mask(0) : core_->cores();
}

void TurnGroup::shutdown() {
  if (core_ != nullptr) core_->shutdown();
}

}  // namespace corelane
