#include "corelane/base/log.h"

#include <spdlog/details/log_msg.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <atomic>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "base/fork.h"
#include "base/leaked.h"
#include "base/sync.h"
#include "base/trust/file_size_signal.h"
#include "base/trust/secure_environment.h"
#include "corelane/base/printable.h"

namespace corelane::log {

namespace {

struct LevelRow {
  std::string_view name;
  spdlog::level::level_enum shown;  ///< As the lines on stderr name it.
};

/// Indexed by Level.
constexpr LevelRow kLevels[] = {
    {"off", spdlog::level::off},   {"error", spdlog::level::err},   {"warn", spdlog::level::warn},
    {"info", spdlog::level::info}, {"debug", spdlog::level::debug}, {"trace", spdlog::level::trace},
};

const LevelRow& row_of(Level level) noexcept {
  const auto i = static_cast<std::size_t>(level);
  return kLevels[i < std::size(kLevels) ? i : 0];
}

std::optional<Level> level_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < std::size(kLevels); ++i)
    if (name == kLevels[i].name) return static_cast<Level>(i);
  return std::nullopt;
}

/// Shared, so that a callback that is replaced while it runs lives until it returns.
using CallbackPtr = std::shared_ptr<const Callback>;

struct State {
  std::atomic<int> level{static_cast<int>(Level::kWarn)};
  Mutex print_mutex{LockRank::kLeaf};
  spdlog::sinks::stderr_sink_st to_stderr CORELANE_GUARDED_BY(print_mutex);
  Mutex mutex{LockRank::kLeaf};
  CallbackPtr to_user CORELANE_GUARDED_BY(mutex);  // Null without a callback.
  std::atomic<bool> swapping{false};               // `to_user` is neither the old one nor the new.
  static inline State* made = nullptr;             // The one of this process.

  State() {
    made = this;
    call_in_forked_child([] { made->begin_anew(); });
    to_stderr.set_pattern("%Y-%m-%d %H:%M:%S.%e corelane %l %n: %v");
    const char* wanted = environment("CORELANE_LOG");
    if (wanted == nullptr || *wanted == '\0') return;
    if (const auto parsed = level_from_name(wanted)) {
      level = static_cast<int>(*parsed);
      return;
    }
    const std::string text = fmt::format(
        "CORELANE_LOG is '{}'; allowed are off, error, warn, info, debug, trace; using warn",
        wanted);
    print(spdlog::details::log_msg("log", spdlog::level::warn, text));
  }

  void print(const spdlog::details::log_msg& line) {
    const NoFileSizeSignal lost_instead;  // Where stderr is a file that may not grow.
    const MutexLock lock(print_mutex);
    to_stderr.log(line);
  }

  /// In a forked child, whose only thread this is: a thread of the parent may have held a mutex at
  /// the fork, and does not exist here to release it.
  void begin_anew() noexcept {
    new (&print_mutex) Mutex(LockRank::kLeaf);
    new (&mutex) Mutex(LockRank::kLeaf);
    if (swapping.exchange(false)) new (&to_user) CallbackPtr();
  }

  /// A line that the callback itself causes goes to stderr, so that a callback cannot call itself
  /// without end.
  CallbackPtr callback(bool in_callback) {
    if (in_callback) return nullptr;
    const MutexLock lock(mutex);
    return to_user;
  }
};

State& state() {
  static Leaked<State> s;  // Threads may log while the process ends.
  return *s;
}

}  // namespace

void set_level(Level level) noexcept { state().level = static_cast<int>(level); }

Level level() noexcept {
  try {
    return static_cast<Level>(state().level.load(std::memory_order_relaxed));
  } catch (...) {
    return Level::kWarn;  // There was no memory for the first use: the next one tries again.
  }
}

void set_callback(Callback callback) {
  CallbackPtr added = callback ? std::make_shared<Callback>(std::move(callback)) : nullptr;
  State& s = state();
  const MutexLock lock(s.mutex);
  s.swapping = true;
  s.to_user.swap(added);  // The old callback is destroyed after the lock.
  s.swapping = false;
}

void write(Level level, std::string_view part, std::string_view text) noexcept {
  if (level == Level::kOff || !enabled(level)) return;
  thread_local bool in_callback = false;
  const bool nested = in_callback;
  try {
    const CallbackPtr callback = state().callback(nested);
    const std::string line = printable(std::string(text));
    in_callback = true;
    if (callback)
      (*callback)(level, part, line);
    else
      state().print(
          spdlog::details::log_msg({part.data(), part.size()}, row_of(level).shown, line));
  } catch (...) {
    // By contract: whatever a callback (or a closed stderr) throws must not reach the caller,
    // and there is no other place to report it.
  }
  in_callback = nested;
}

void detail::write(Level level, std::string_view part, fmt::string_view format,
                   fmt::format_args arguments) noexcept {
  try {
    log::write(level, part, fmt::vformat(format, arguments));
  } catch (...) {
    log::write(level, part, {format.data(), format.size()});  // There is no memory for more.
  }
}

std::string_view level_name(Level level) noexcept { return row_of(level).name; }

}  // namespace corelane::log
