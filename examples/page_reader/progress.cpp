#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace page_reader {

bool stderr_is_terminal() noexcept { return isatty(STDERR_FILENO) == 1; }

std::string progress_bar(double fraction, std::size_t width) {
  const double full = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(width);
  std::string bar(static_cast<std::size_t>(full), '#');
  bar.resize(width, '.');
  return "[" + bar + "]";
}

Progress::Progress(std::string title, bool terminal)
    : title_(std::move(title)), terminal_(terminal) {}

Progress::~Progress() {
  if (terminal_ && !drawn_.empty()) std::fputc('\n', stderr);
}

void Progress::show(std::size_t done, std::size_t total, std::string_view what) {
  if (!terminal_) {
    if (drawn_ == what) return;
    drawn_ = what;
    std::fputs(fmt::format("{}: {}\n", title_, what).c_str(), stderr);
    return;
  }
  if (total > 0)
    fraction_ = std::max(fraction_, static_cast<double>(done) / static_cast<double>(total));
  std::string line = fmt::format("{:<8}{} {:3.0f} %  {}", title_, progress_bar(fraction_, 30),
                                 std::min(fraction_, 1.0) * 100, what);
  if (line == drawn_) return;
  drawn_ = std::move(line);
  // Back to the start of the line, and nothing left of what stood there.
  std::fputs(fmt::format("\r{}\x1b[K", drawn_).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace page_reader
