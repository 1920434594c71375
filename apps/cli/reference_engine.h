/// The other side of `corelane compare`: ONNX Runtime in a Python process.
///
/// ONNX Runtime is a tool dependency, not linked: tools/ort_reference.py runs the model
/// and exchanges .npy files through a temporary folder, which is removed with the ReferenceEngine.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/python_process.h"
#include "common/npy.h"

namespace corelane::cli {

/// An inner value of the reference that the program cannot show.
struct LeftOut {
  std::string name;
  std::string reason;
};

struct InnerValues {
  std::vector<std::string> shared;  ///< Those that both sides have, in the model's order.
  std::vector<LeftOut> left_out;
};

class ReferenceEngine {
 public:
  struct Options {
    std::string python;  ///< Empty: CORELANE_PYTHON, the .venv above the program, python3.
    std::string script;  ///< Empty: found beside the program.
    std::string model;   ///< The program under test: a program file or an ONNX model.
    std::string onnx;    ///< The reference; empty: `model` as given, or the graph inside it.
    ImportOptions import;
    std::string part;  ///< Of a program file of several networks.
  };
  /// kNotFound (script, files), kUnsupported (a program without a graph), kIo.
  static Result<ReferenceEngine> make(Options options);

  /// What the reference runs, as a person would name it.
  const std::string& source() const noexcept { return source_; }
  /// kNotFound / kEngineFailed when the reference process does not do its work.
  Result<InnerValues> inner_values() const;
  /// Runs the reference on `inputs` (by position); `exposed` become outputs after its own.
  Status run(const std::vector<common::Array>& inputs, const std::vector<std::string>& exposed);
  /// The i-th output; nullopt when the reference has fewer.
  Result<std::optional<common::Array>> output(std::size_t i) const;

 private:
  ReferenceEngine(Options options, TemporaryFolder folder)
      : options_(std::move(options)), folder_(std::move(folder)) {}

  Options options_;
  TemporaryFolder folder_;
  std::string source_;
  std::filesystem::path reference_;
};

}  // namespace corelane::cli
