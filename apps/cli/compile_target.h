// Where `corelane compile --target` writes: some APIs look for a name of their own in a folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace corelane::cli {

/// The chips whose APIs do.
inline std::vector<std::string> compile_targets() { return {"aic100"}; }

/// The device of the tools of that API where no list names devices.
inline constexpr const char* kTargetDevice = "virtual:aic100";

/// The program file of one of them in the folder that the user named.
inline std::filesystem::path target_file(const std::filesystem::path& folder) {
  return folder / "programqpc.bin";
}

}  // namespace corelane::cli
