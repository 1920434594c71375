/// Options that say what they allow, so that a wrong value is refused before anything runs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "corelane/base/clock.h"
#include "corelane/base/status.h"

namespace corelane::cli {

/// A repeatable option of one value each. (CLI11's own lists would take the words after it too:
/// in `run -i x.npy model.rknn` the model.)
CLI::Option* add_list(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                      const std::string& help);

/// The longest time that an option takes, in milliseconds: a day.
inline constexpr double kLongestMs = 86'400'000;

/// A number from `low` to `high`; a minus sign, nan and text are refused with the range.
CLI::Validator between(double low, double high);

/// Whether a report could be written to `path` later: kInvalidArgument for a folder, kIo where the
/// folder it would lie in cannot be written. An empty path is fine. Names `option`.
Status check_output(const std::string& path, const std::string& option);

/// While it lives, the first Ctrl-C (SIGINT) or SIGTERM asks the command to finish; the second one
/// ends the process. One at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  /// Whether a signal came since the latest Interrupts was made. Any thread.
  static bool pending() noexcept;
  /// A signal wakes no thread: a thread that waits calls pending() again after this time.
  static constexpr Duration kStep = std::chrono::milliseconds(50);
};

}  // namespace corelane::cli
