#include "corelane/base/log.h"

#include <spdlog/details/log_msg.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "base/leaked.h"
#include "base/sync.h"

namespace corelane::log {

namespace {

spdlog::level::level_enum to_spdlog(Level level) noexcept {
  switch (level) {
    case Level::kOff:
      return spdlog::level::off;
    case Level::kError:
      return spdlog::level::err;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kTrace:
      return spdlog::level::trace;
  }
  return spdlog::level::off;
}

Level from_spdlog(spdlog::level::level_enum level) noexcept {
  switch (level) {
    case spdlog::level::trace:
      return Level::kTrace;
    case spdlog::level::debug:
      return Level::kDebug;
    case spdlog::level::info:
      return Level::kInfo;
    case spdlog::level::warn:
      return Level::kWarn;
    case spdlog::level::err:
    case spdlog::level::critical:
      return Level::kError;
    default:
      return Level::kOff;
  }
}

/// Hands lines to the user. It has no lock: the sink is shared, so a callback that is replaced
/// while it runs lives until it returns.
class CallbackSink final : public spdlog::sinks::sink {
 public:
  explicit CallbackSink(Callback callback) : callback_(std::move(callback)) {}
  void log(const spdlog::details::log_msg& msg) override {
    callback_(from_spdlog(msg.level), {msg.logger_name.data(), msg.logger_name.size()},
              {msg.payload.data(), msg.payload.size()});
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

 private:
  Callback callback_;
};

std::optional<Level> level_from_name(std::string_view name) noexcept {
  for (int l = static_cast<int>(Level::kOff); l <= static_cast<int>(Level::kTrace); ++l)
    if (name == level_name(static_cast<Level>(l))) return static_cast<Level>(l);
  return std::nullopt;
}

using SinkPtr = std::shared_ptr<spdlog::sinks::sink>;

struct State {
  std::atomic<int> level{static_cast<int>(Level::kWarn)};
  SinkPtr to_stderr = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  Mutex mutex{LockRank::kLeaf};
  SinkPtr to_user CORELANE_GUARDED_BY(mutex);  // Null without a callback.

  State() {
    to_stderr->set_pattern("%Y-%m-%d %H:%M:%S.%e corelane %l %n: %v");
    const char* wanted = std::getenv("CORELANE_LOG");
    if (wanted == nullptr || *wanted == '\0') return;
    if (const auto parsed = level_from_name(wanted)) {
      level = static_cast<int>(*parsed);
      return;
    }
    const std::string text = fmt::format(
        "CORELANE_LOG is '{}'; allowed are off, error, warn, info, debug, trace; using warn",
        wanted);
    to_stderr->log(spdlog::details::log_msg("log", spdlog::level::warn, text));
  }

  /// A line that the callback itself causes goes to stderr, so that a callback cannot call itself
  /// without end.
  SinkPtr pick(bool in_callback) {
    if (in_callback) return to_stderr;
    const MutexLock lock(mutex);
    return to_user ? to_user : to_stderr;
  }
};

State& state() {
  static Leaked<State> s;  // Threads may log while the process ends.
  return *s;
}

}  // namespace

void set_level(Level level) noexcept { state().level = static_cast<int>(level); }

Level level() noexcept { return static_cast<Level>(state().level.load(std::memory_order_relaxed)); }

void set_callback(Callback callback) {
  SinkPtr sink = callback ? std::make_shared<CallbackSink>(std::move(callback)) : nullptr;
  State& s = state();
  const MutexLock lock(s.mutex);
  s.to_user.swap(sink);  // The old callback is destroyed after the lock.
}

void write(Level level, std::string_view part, std::string_view text) {
  if (level == Level::kOff || !enabled(level)) return;
  thread_local bool in_callback = false;
  const bool nested = in_callback;
  try {
    const SinkPtr sink = state().pick(nested);
    in_callback = true;
    sink->log(spdlog::details::log_msg({part.data(), part.size()}, to_spdlog(level),
                                       {text.data(), text.size()}));
  } catch (...) {
    // By contract: whatever a callback (or a closed stderr) throws must not reach the caller,
    // and there is no other place to report it.
  }
  in_callback = nested;
}

std::string_view level_name(Level level) noexcept {
  switch (level) {
    case Level::kOff:
      return "off";
    case Level::kError:
      return "error";
    case Level::kWarn:
      return "warn";
    case Level::kInfo:
      return "info";
    case Level::kDebug:
      return "debug";
    case Level::kTrace:
      return "trace";
  }
  return "off";
}

}  // namespace corelane::log
