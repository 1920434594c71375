#include "runtime/log/merged_log_core.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/fork.h"
#include "base/guard.h"
#include "base/later.h"
#include "corelane/device/device.h"

namespace corelane::runtime {
namespace {

constexpr const char* kPart = "log";

Status check(const MergedLogOptions& options, const Clock& clock) {
  constexpr Duration kLongest = std::chrono::hours(1);
  constexpr std::size_t kLeast = std::size_t{4} << 10;
  constexpr std::size_t kMost = std::size_t{1} << 30;
  if (!options.on_line)
    return error(Code::kInvalidArgument, "a merged log without on_line; give one");
  if (options.window < Duration{0} || options.window > kLongest)
    return error(Code::kInvalidArgument, "the window is {} ns; 0 to {} are allowed",
                 options.window.count(), kLongest.count());
  if (options.memory < kLeast || options.memory > kMost)
    return error(Code::kInvalidArgument,
                 "the memory of a merged log is {} bytes; {} to {} are allowed", options.memory,
                 kLeast, kMost);
  for (const auto& device : options.devices) {
    if (device == nullptr) return error(Code::kInvalidArgument, "a device of a merged log is null");
    const Clock& its = *device->clock();
    if (&its != &clock && (its.is_virtual() || clock.is_virtual()))
      return error(
          Code::kInvalidArgument,
          "device '{}' has another clock than the log, so that their stamps have no order; "
          "open all devices with one clock, and give it to the log",
          device->info().instance);
  }
  return {};
}

log::Level level_of(device::EventKind kind) {
  const bool trouble = kind == device::EventKind::kCoreReset || kind == device::EventKind::kLost;
  return trouble ? log::Level::kWarn : log::Level::kInfo;
}

/// On a virtual clock each line comes at its time exactly.
Duration pause_of(const Clock& clock) {
  return clock.is_virtual() ? Duration{0} : Duration(std::chrono::milliseconds(10));
}

}  // namespace

Result<std::shared_ptr<MergedLogCore>> MergedLogCore::create(MergedLogOptions options) {
  std::shared_ptr<Clock> clock = options.clock;
  if (clock == nullptr && !options.devices.empty() && options.devices.front() != nullptr)
    clock = options.devices.front()->clock();
  if (clock == nullptr) clock = real_clock();
  CORELANE_TRY(check(options, *clock));
  std::shared_ptr<MergedLogCore> core(new MergedLogCore(options, std::move(clock)));
  // From here on the thread is there, and posting to it cannot fail.
  dispatch::CallbackThread::Job nothing = [] {};
  CORELANE_TRY(core->thread_->post(nothing));
  for (const auto& device : options.devices) CORELANE_TRY(core->watch(device));
  return core;
}

MergedLogCore::MergedLogCore(MergedLogOptions& options, std::shared_ptr<Clock> clock)
    : on_line_(std::move(options.on_line)),
      clock_(std::move(clock)),
      process_(fork_count()),
      pause_(pause_of(*clock_)),
      thread_(std::make_shared<dispatch::CallbackThread>(clock_, "corelane-log", kPart)),
      merger_(options.window, options.memory) {}

/// Lines wait for the window in any case, so the device need not wake a thread for each.
Status MergedLogCore::watch(const std::shared_ptr<device::Device>& device) {
  device::ObserverOptions options;
  options.group_events = true;
  options.ring = 8192;
  options.on_event = [weak = weak_from_this(),
                      part = device->info().instance](const device::Event& event) {
    if (const auto alive = weak.lock())
      alive->add({event.stamp, level_of(event.kind), part, event.text, true});
  };
  CORELANE_ASSIGN(auto observation, device->observe(std::move(options)));
  observations_.push_back(std::move(observation));
  return {};
}

bool MergedLogCore::forked() const noexcept { return fork_count() != process_; }

void MergedLogCore::write(log::Level level, std::string_view part, std::string_view text) {
  if (level == log::Level::kOff || forked()) return;
  if (thread_->is_current() && complaining_) return;
  add({clock_->now(), level, std::string(part), std::string(text), false});
}

void MergedLogCore::add(MergedLine line) {
  std::optional<TimePoint> when;
  {
    const MutexLock lock(mutex_);
    if (!merger_.add(std::move(line))) return;
    when = next_timer();
  }
  set_timer(when);
}

std::optional<TimePoint> MergedLogCore::next_timer() {
  const std::optional<TimePoint> due = merger_.due();
  if (!due) return std::nullopt;
  const TimePoint when = std::max(*due, later(delivered_, pause_));
  if (when >= timer_) return std::nullopt;
  timer_ = when;
  return when;
}

void MergedLogCore::set_timer(std::optional<TimePoint> when) {
  if (!when) return;
  clock_->call_at(*when, [weak = weak_from_this(), at = *when] {
    if (const auto alive = weak.lock()) alive->timer_due(at);
  });
}

/// A timer that an earlier one has replaced does nothing.
void MergedLogCore::timer_due(TimePoint when) {
  {
    const MutexLock lock(mutex_);
    if (timer_ != when) return;
  }
  post_delivery(false);
}

void MergedLogCore::post_delivery(bool all) {
  dispatch::CallbackThread::Job job = [self = shared_from_this(), all] { self->deliver(all); };
  if (const Status posted = thread_->post(job); !posted.ok())
    log::error(kPart, "lines wait for a thread: {}", posted.to_string());
}

void MergedLogCore::deliver(bool all) {
  const TimePoint now = clock_->now();
  LineMerger::Lines lines;
  {
    const MutexLock lock(mutex_);
    timer_ = kNever;
    delivered_ = now;
    lines = all ? merger_.take_all() : merger_.take(now);
  }
  for (const MergedLine& line : lines) call(line);
  std::optional<TimePoint> when;
  {
    const MutexLock lock(mutex_);
    merger_.forget(lines);
    when = next_timer();
  }
  set_timer(when);
}

/// What it throws must not come back as a line, which it would throw at again.
void MergedLogCore::call(const MergedLine& line) noexcept {
  try {
    on_line_(line);
  } catch (...) {
    complaining_ = true;
    corelane::detail::log_exception(kPart, "on_line of a merged log");
    complaining_ = false;
  }
}

bool MergedLogCore::flush(TimePoint until) {
  if (forked() || dispatch::CallbackThread::any_is_current()) return false;
  for (const auto& observation : observations_)
    if (!observation->flush(until)) return false;
  post_delivery(true);
  return thread_->wait_idle(until);
}

std::uint64_t MergedLogCore::dropped() const {
  if (forked()) return 0;
  std::uint64_t sum = 0;
  for (const auto& observation : observations_) sum += observation->dropped();
  const MutexLock lock(mutex_);
  return sum + merger_.dropped();
}

/// In a callback nothing is waited for: two of them might wait for each other.
void MergedLogCore::end() {
  const bool waits = !dispatch::CallbackThread::any_is_current();
  if (waits)
    for (const auto& observation : observations_) (void)observation->flush();
  observations_.clear();
  post_delivery(true);
  if (waits) thread_->wait_idle(kNever);
}

}  // namespace corelane::runtime
