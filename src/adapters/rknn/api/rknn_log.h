/// Lines in the form programs written for this API look for: "E RKNN: [hh:mm:ss.mmm] text", on
/// stderr. `RKNN_LOG_LEVEL` 0 errors (default), 1 warnings, 2 information, 3 debug, 4 also the time
/// of each layer after each run, 5 also dumps tensors. All functions from any thread.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace corelane::rknn::log {

enum class Level : int { kError = 0, kWarn = 1, kInfo = 2, kDebug = 3, kLayers = 4, kDump = 5 };

/// `RKNN_LOG_LEVEL` as it was when the library was first used; out of range is clamped.
Level level() noexcept;
inline bool enabled(Level l) noexcept { return static_cast<int>(l) <= static_cast<int>(level()); }
/// Logs once, as information, which variables of the environment are set that choose memory of the
/// vendor's chips (`RKNN_INTERNAL_MEM_TYPE`, `RKNN_SEPARATE_WEIGHT_MEM`, `RKNN_WEIGHT_MEM_TYPE`):
/// accepted, without effect.
void log_environment();
/// One line, whatever the level says. Never throws.
void write(Level level, std::string_view text) noexcept;

template <class... Args>
void line(Level l, fmt::format_string<Args...> f, Args&&... args) {
  if (enabled(l)) write(l, fmt::format(f, std::forward<Args>(args)...));
}

}  // namespace corelane::rknn::log
