/// The command line of the demo.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "corelane/base/status.h"

namespace page_reader {

/// Exit codes, the same bands as those of the corelane CLI (docs/demo.md).
enum Exit : int {
  kExitOk = 0,
  kExitUsage = 2,      ///< Unknown option, missing or wrong argument.
  kExitCaller = 3,     ///< A file, model or device that is not there, or not what it should be.
  kExitData = 4,       ///< A damaged picture, a model that the device refuses.
  kExitResource = 5,   ///< Memory, cores, files that cannot be written.
  kExitExecution = 6,  ///< An inference failed.
  kExitInternal = 7,
};
int exit_code(const corelane::Status& status) noexcept;

struct CommandLine {
  std::filesystem::path page;
  std::filesystem::path models_dir;
  std::filesystem::path out = "out/demo";
  std::string device;  ///< Empty: CORELANE_DEVICE, else virtual:rk3588.
  std::filesystem::path font;
  std::filesystem::path dump;
  std::size_t repeat = 3;
  std::size_t in_flight = 2;
  std::size_t detection_cores = 1;
};

/// What was asked for, or the exit code when the program is done already (help, a usage error);
/// help goes to stdout, errors to stderr.
struct ParsedCommandLine {
  CommandLine options;
  std::optional<int> exit;
};
ParsedCommandLine parse_command_line(int argc, const char* const* argv);

}  // namespace page_reader
