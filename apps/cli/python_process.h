/// What `corelane` starts in Python: ONNX Runtime is a tool dependency and not linked.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "corelane/base/status.h"

namespace corelane::cli {

/// A folder that is removed with its content.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make();
  TemporaryFolder(TemporaryFolder&& o) noexcept : path_(std::exchange(o.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

/// False where a folder on the way cannot be searched.
bool is_file(const std::filesystem::path& path);

/// `given`, else CORELANE_PYTHON, the .venv of a folder above the program, python3.
std::string find_python(const std::string& given);

/// Runs it and waits; its exit code, -1 where a signal ended it. A build tree's own package
/// is found by it. kNotFound when it cannot be started, with what the caller `needs`; kCancelled
/// after Ctrl-C.
Result<int> run_python(const std::vector<std::string>& words, std::string_view needs);

}  // namespace corelane::cli
