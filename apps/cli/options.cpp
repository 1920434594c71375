#include "cli/options.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace corelane::cli {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "the signal handler needs it");

void on_signal(int) { interrupted.store(true, std::memory_order_relaxed); }

}  // namespace

CLI::Option* add_list(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                      const std::string& help) {
  return app.add_option(name, values, help)->allow_extra_args(false);
}

CLI::Validator between(double low, double high) {
  const std::string range = fmt::format("{} to {}", low, high);
  return CLI::Validator(
      [low, high, range](std::string& text) {
        // strtod takes nan, inf and hexadecimal numbers; the comparison with the range refuses the
        // first.
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool number = end != text.c_str() && *end == '\0';
        if (number && value >= low && value <= high) return std::string();
        return fmt::format("'{}' is {}; allowed are numbers from {}", text,
                           number ? "out of range" : "not a number", range);
      },
      range);
}

Status check_output(const std::string& path, const std::string& option) {
  namespace fs = std::filesystem;
  if (path.empty()) return {};
  std::error_code ec;
  if (fs::is_directory(path, ec)) {
    return error(Code::kInvalidArgument, "{} '{}' is a folder; give the name of a file", option,
                 path);
  }
  if (fs::exists(path, ec) && !fs::is_regular_file(path, ec)) {  // It is written to, not replaced.
    if (::access(path.c_str(), W_OK) == 0) return {};
    return error(Code::kIo, "{} '{}' cannot be written: {}", option, path, std::strerror(errno));
  }
  // Missing folders are made when the file is written; the nearest one that exists must allow it.
  fs::path folder = fs::absolute(path, ec).parent_path();
  while (!fs::exists(folder, ec) && folder != folder.root_path()) folder = folder.parent_path();
  if (!fs::is_directory(folder, ec)) {
    return error(Code::kIo, "{} '{}' cannot be written: '{}' is not a folder", option, path,
                 folder.string());
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return error(Code::kIo, "{} '{}' cannot be written: folder '{}': {}", option, path,
                 folder.string(), std::strerror(errno));
  }
  return {};
}

Interrupts::Interrupts() {
  interrupted.store(false, std::memory_order_relaxed);
  struct sigaction action {};
  action.sa_handler = on_signal;
  // The second signal finds the default action and ends the process.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

Interrupts::~Interrupts() {
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
}

bool Interrupts::pending() noexcept { return interrupted.load(std::memory_order_relaxed); }

}  // namespace corelane::cli
