/// Logging with levels and one callback. Nothing is ever written to stdout: without a callback,
/// lines go to stderr. Level from `CORELANE_LOG` (error, warn, info, debug, trace, off), default
/// warn. All functions from any thread; the callback may be called from any thread and may call
/// the library; no lock is held while it runs.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <string_view>

#include "corelane/base/api.h"

namespace corelane::log {

enum class Level : int { kOff = 0, kError = 1, kWarn = 2, kInfo = 3, kDebug = 4, kTrace = 5 };

/// One line: level, the part that writes it ("device", "runtime", ...), the text without newline
/// and with control characters written out (corelane/base/printable.h).
using Callback = std::function<void(Level, std::string_view part, std::string_view text)>;

/// Lines below `level` are dropped from now on. Any thread.
CORELANE_API void set_level(Level level) noexcept;
/// The level in force: `CORELANE_LOG`, or what set_level() was given. Any thread.
CORELANE_API Level level() noexcept;
/// True when a line of that level would be delivered.
inline bool enabled(Level l) noexcept { return static_cast<int>(l) <= static_cast<int>(level()); }
/// Sends lines to `callback`; an empty one restores stderr. An exception it throws is dropped.
CORELANE_API void set_callback(Callback callback);
/// Delivers one line when its level is enabled.
CORELANE_API void write(Level level, std::string_view part, std::string_view text) noexcept;
namespace detail {
CORELANE_API void write(Level level, std::string_view part, fmt::string_view format,
                        fmt::format_args arguments) noexcept;
}  // namespace detail
/// "error", "warn", ... ; "off".
CORELANE_API std::string_view level_name(Level level) noexcept;

/// Writes a line of level `l`. `part` names the room. Never throws. Any thread.
template <class... Args>
void line(Level l, std::string_view part, fmt::format_string<Args...> f, Args&&... args) noexcept {
  if (enabled(l)) detail::write(l, part, f, fmt::make_format_args(args...));
}
/// A failure that no caller gets to see. As line().
template <class... Args>
void error(std::string_view part, fmt::format_string<Args...> f, Args&&... args) noexcept {
  line(Level::kError, part, f, std::forward<Args>(args)...);
}
/// Something that works differently from what was asked. As line().
template <class... Args>
void warn(std::string_view part, fmt::format_string<Args...> f, Args&&... args) noexcept {
  line(Level::kWarn, part, f, std::forward<Args>(args)...);
}
/// A fact for operators. As line().
template <class... Args>
void info(std::string_view part, fmt::format_string<Args...> f, Args&&... args) noexcept {
  line(Level::kInfo, part, f, std::forward<Args>(args)...);
}
/// A fact for developers. As line().
template <class... Args>
void debug(std::string_view part, fmt::format_string<Args...> f, Args&&... args) noexcept {
  line(Level::kDebug, part, f, std::forward<Args>(args)...);
}

}  // namespace corelane::log
