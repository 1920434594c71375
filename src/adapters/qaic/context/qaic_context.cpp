#include "adapters/qaic/context/qaic_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "adapters/qaic/context/qaic_callback_gate.h"
#include "adapters/qaic/context/qaic_devices.h"
#include "base/guard.h"
#include "base/leaked.h"
#include "base/reserve.h"
#include "base/sync.h"
#include "corelane/base/clock.h"
#include "corelane/base/log.h"
#include "corelane/device/device.h"
#include "corelane/runtime/merged_log.h"
#include "dispatch/callback_thread.h"

namespace corelane::qaic {
namespace {

using Observations = std::vector<std::shared_ptr<device::Observation>>;

log::Level level_of(QLogLevel level) noexcept {
  if (level <= QL_DEBUG) return log::Level::kDebug;
  if (level == QL_INFO) return log::Level::kInfo;
  return level == QL_WARN ? log::Level::kWarn : log::Level::kError;
}

QLogLevel level_of(log::Level level) noexcept {
  if (level >= log::Level::kDebug) return QL_DEBUG;
  if (level == log::Level::kInfo) return QL_INFO;
  return level == log::Level::kWarn ? QL_WARN : QL_ERROR;
}

/// The end of an observation waits for a call of it that runs. A call of the user's that ends a
/// context must not wait for another one, which might wait for it: its observations are put here,
/// where they tell nobody anything, and go when a context is made or ended elsewhere.
struct EndedObservations {
  Mutex mutex{LockRank::kLeaf};
  Observations kept CORELANE_GUARDED_BY(mutex);
};
EndedObservations& ended() {
  static Leaked<EndedObservations> ended;
  return *ended;
}

void end_all(Observations observations) {
  if (CallbackGate::in_call()) {
    const MutexLock lock(ended().mutex);
    std::ranges::move(observations, std::back_inserter(ended().kept));
    return;
  }
  Observations others;  // They go without the lock.
  const MutexLock lock(ended().mutex);
  others.swap(ended().kept);
}

QAicContextID next_id() {
  static std::atomic<QAicContextID> last{0};
  return ++last;
}

Status check_options(QAicContextProperties_t properties, std::span<const QID> devices) {
  if (const auto undefined =
          properties & ~QAicContextProperties_t{QAIC_CONTEXT_COLLECT_DEVICE_LOGS};
      undefined != 0) {
    return error(Code::kInvalidArgument,
                 "context properties {:#x} have undefined bits {:#x}; QAIC_CONTEXT_DEFAULT (0) and "
                 "QAIC_CONTEXT_COLLECT_DEVICE_LOGS (1) are allowed",
                 properties, undefined);
  }
  if (devices.empty())
    return error(Code::kInvalidArgument, "a context of no device; give the number of at least one");
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (std::ranges::count(devices, devices[i]) < 2) continue;
    return error(Code::kInvalidArgument, "device {} is twice in the list; give each device once",
                 devices[i]);
  }
  return {};
}

}  // namespace

/// What the threads that call the user share with the context.
struct ContextObject::State : std::enable_shared_from_this<State> {
  State() = default;
  ~State() { caller->stop(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  QAicContextID id = next_id();
  std::vector<QID> numbers;
  std::vector<std::shared_ptr<device::Device>> devices;
  ContextCallbacks callbacks;
  std::atomic<int> level{QL_WARN};
  CallbackGate gate;
  Mutex mutex{LockRank::kLeaf};
  Observations observations CORELANE_GUARDED_BY(mutex);
  MergedLog merged CORELANE_GUARDED_BY(mutex);
  std::atomic<bool> collects{false};  ///< Lines go through `merged`.
  /// See post().
  const std::shared_ptr<dispatch::CallbackThread> caller =
      std::make_shared<dispatch::CallbackThread>(real_clock(), "corelane-caller", "qaic");

  bool passes(QLogLevel line) const noexcept {
    return static_cast<int>(line) >= level.load(std::memory_order_relaxed);
  }

  /// Calls the user's log function; without one, or after the context's end, the library's log.
  void deliver(QLogLevel line, const std::string& text) noexcept {
    if (!passes(line)) return;
    const bool told = callbacks.log != nullptr && gate.call("the log callback", [&] {
      callbacks.log(line, text.c_str(), callbacks.log_data);
    });
    if (!told) log::write(level_of(line), "qaic", text);
  }

  void report(QAicErrorType type, const std::string& text) noexcept {
    const bool told = callbacks.error != nullptr && gate.call("the error handler", [&] {
      callbacks.error(id, text.c_str(), type, nullptr, 0, callbacks.error_data);
    });
    if (!told) log::write(log::Level::kError, "qaic", text);
  }

  void post(const Clock& clock, std::function<void()> call) noexcept {
    if (clock.is_virtual()) return run_callback("qaic", "a call of a context", call);
    caller->post_or_call(std::move(call));
  }

  /// close() waits for it.
  void report_by_post(const Clock& clock, QAicErrorType type, std::string text) noexcept {
    if (callbacks.error == nullptr || !gate.reserve())
      return log::write(log::Level::kError, "qaic", text);
    post(clock, sure_once<void()>([self = shared_from_this(), type, said = std::move(text)] {
           self->gate.call_due("the error handler", [&] {
             const ContextCallbacks& user = self->callbacks;
             user.error(self->id, said.c_str(), type, nullptr, 0, user.error_data);
           });
         }));
  }
};

Result<std::shared_ptr<ContextObject>> ContextObject::create(QAicContextProperties_t properties,
                                                             std::span<const QID> devices,
                                                             const ContextCallbacks& callbacks) {
  CORELANE_TRY(check_options(properties, devices));
  end_all({});
  auto state = std::make_shared<State>();
  state->numbers.assign(devices.begin(), devices.end());
  state->callbacks = callbacks;
  for (const QID number : devices) {
    CORELANE_ASSIGN(auto device, open_device(number));
    state->devices.push_back(std::move(device));
  }
  std::shared_ptr<ContextObject> context(new ContextObject(std::move(state)));
  if ((properties & QAIC_CONTEXT_COLLECT_DEVICE_LOGS) != 0) CORELANE_TRY(context->collect_logs());
  CORELANE_TRY(context->watch_devices());
  return context;
}

ContextObject::ContextObject(std::shared_ptr<State> state)
    : Object(kKind), state_(std::move(state)) {}

ContextObject::~ContextObject() { close(); }

/// One report for each loss of each device.
Status ContextObject::watch_devices() {
  for (std::size_t i = 0; i < state_->devices.size(); ++i) {
    device::ObserverOptions watch;
    // Weakly: an observation may outlive its context, see EndedObservations.
    watch.on_event = [weak = std::weak_ptr(state_), i](const device::Event& event) {
      const auto state = event.kind == device::EventKind::kLost ? weak.lock() : nullptr;
      if (state == nullptr) return;
      const device::Device& lost = *state->devices[i];
      state->report_by_post(
          *lost.clock(), QAIC_ERROR_CONTEXT_RUNTIME,
          fmt::format("device {} ({}) was lost: {}; load its programs again once it is back",
                      state->numbers[i], lost.info().instance, event.text));
    };
    auto observation = state_->devices[i]->observe(std::move(watch));
    // A device that tells nothing is as good as one that is never lost.
    if (!observation && observation.error().code() == Code::kUnsupported) continue;
    if (!observation) return observation.error();
    const MutexLock lock(state_->mutex);
    state_->observations.push_back(*std::move(observation));
  }
  return {};
}

Status ContextObject::collect_logs() {
  MergedLogOptions options;
  options.devices = state_->devices;
  // Weakly: the state holds the log that holds this function.
  options.on_line = [weak = std::weak_ptr(state_)](const MergedLine& line) {
    const auto state = weak.lock();
    if (state == nullptr) return;
    state->deliver(level_of(line.level),
                   line.from_device ? fmt::format("{}: {}", line.part, line.text) : line.text);
  };
  CORELANE_ASSIGN(auto merged, MergedLog::create(std::move(options)));
  const MutexLock lock(state_->mutex);
  state_->merged = std::move(merged);
  // After `merged`, since log() looks at it without the lock.
  state_->collects = true;
  return {};
}

void ContextObject::close() noexcept {
  MergedLog merged;
  Observations observations;
  {
    const MutexLock lock(state_->mutex);
    state_->collects = false;
    std::swap(merged, state_->merged);
    observations.swap(state_->observations);
  }
  // Its end delivers what waits, but may come later: another thread that logs holds a copy.
  run_callback("qaic", "delivering log lines", [&] { static_cast<void>(merged.flush()); });
  merged = {};
  // After the lines: those that waited still reach the user's log callback.
  state_->gate.close();
  end_all(std::move(observations));
}

QAicContextID ContextObject::id() const noexcept { return state_->id; }

const std::vector<QID>& ContextObject::devices() const noexcept { return state_->numbers; }

Result<std::shared_ptr<device::Device>> ContextObject::device(QID number) const {
  const auto found = std::ranges::find(state_->numbers, number);
  if (found == state_->numbers.end()) {
    return error(Code::kNotFound, "device {} is not of context {}; its devices are: {}", number,
                 id(), fmt::join(state_->numbers, ", "));
  }
  return state_->devices[static_cast<std::size_t>(found - state_->numbers.begin())];
}

void ContextObject::set_level(QLogLevel level) noexcept { state_->level = static_cast<int>(level); }

QLogLevel ContextObject::level() const noexcept {
  return static_cast<QLogLevel>(state_->level.load());
}

void ContextObject::log(QLogLevel level, std::string_view text) const noexcept {
  if (!state_->passes(level)) return;
  run_callback("qaic", "writing a line", [&] {
    if (!state_->collects) return state_->deliver(level, std::string(text));
    // A copy: nothing is called under the lock.
    MergedLog merged;
    {
      const MutexLock lock(state_->mutex);
      merged = state_->merged;
    }
    merged.write(level_of(level), "qaic", text);
  });
}

void ContextObject::report(QAicErrorType type, const Status& why) const noexcept {
  run_callback("qaic", "reporting a failure", [&] { state_->report(type, why.to_string()); });
}

void ContextObject::report_by_post(const Clock& clock, QAicErrorType type,
                                   const Status& why) const noexcept {
  run_callback("qaic", "reporting a failure",
               [&] { state_->report_by_post(clock, type, why.to_string()); });
}

void ContextObject::post(const Clock& clock, std::function<void()> call) const noexcept {
  state_->post(clock, std::move(call));
}

std::uint64_t ContextObject::exceptions() const noexcept { return state_->gate.thrown(); }

}  // namespace corelane::qaic
