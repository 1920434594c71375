#include "adapters/rknn/api/rknn_log.h"

#include <sys/time.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/trust/file_size_signal.h"
#include "base/trust/secure_environment.h"
#include "corelane/base/printable.h"

namespace corelane::rknn::log {

Level level() noexcept {
  static const Level kLevel = [] {
    const char* text = environment("RKNN_LOG_LEVEL");
    const int value = text == nullptr ? 0 : std::atoi(text);
    return static_cast<Level>(std::clamp(value, 0, 5));
  }();
  return kLevel;
}

void log_environment() {
  static const bool kLogged = [] {
    for (const char* name :
         {"RKNN_INTERNAL_MEM_TYPE", "RKNN_SEPARATE_WEIGHT_MEM", "RKNN_WEIGHT_MEM_TYPE"})
      if (const char* value = environment(name))
        line(Level::kInfo, "rknn_init: {}={} accepted without effect: this device has one memory",
             name, value);
    return true;
  }();
  (void)kLogged;
}

void write(Level level, std::string_view text) noexcept {
  constexpr char kLetters[] = "EWIDDD";
  timeval now{};
  gettimeofday(&now, nullptr);
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  try {
    std::string out = fmt::format("{} RKNN: [{:02}:{:02}:{:02}.{:03}] ",
                                  kLetters[std::clamp(static_cast<int>(level), 0, 5)],
                                  parts.tm_hour, parts.tm_min, parts.tm_sec, now.tv_usec / 1000);
    out += printable(std::string(text));
    out += '\n';
    const NoFileSizeSignal lost_instead;  // Where stderr is a file that may not grow.
    // One call for the whole line, so that lines of several threads do not mix.
    std::fwrite(out.data(), 1, out.size(), stderr);
  } catch (...) {
    std::fputs("E RKNN: out of memory while writing a log line\n", stderr);
  }
}

}  // namespace corelane::rknn::log
