/// Files that a command writes: what it reads is kept, and what cannot be written is found early.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "corelane/base/status.h"

namespace corelane::cli {

/// A file that the command will write; an empty path is none.
struct OutputFile {
  std::string option;  ///< Where the user named it.
  std::filesystem::path path;
};

/// What the command reads.
struct ReadFiles {
  std::vector<std::filesystem::path> files;
  /// The files among `files` that are, or may be, ONNX models with external data.
  std::vector<std::filesystem::path> models;
  /// Where external data lie; empty: in the folder of each model.
  std::filesystem::path data_root;
};

/// Files that hold constants of the ONNX model `model`, as far as they are there. None for another
/// file, and for a model that cannot be read.
std::vector<std::filesystem::path> external_data_of(const std::filesystem::path& model,
                                                    const std::filesystem::path& data_root);

/// The files that [NAME=]FILE options may mean, since names and paths may hold "=".
std::vector<std::filesystem::path> possible_files(const std::vector<std::string>& items);

/// kInvalidArgument, which names the option, where an output is a file that is read, by whatever
/// spelling or link, external data of a model, or the file of another output; then what
/// check_output() says. A pipe or a device may be given more than once.
Status check_outputs(const std::vector<OutputFile>& outputs, const ReadFiles& read);

}  // namespace corelane::cli
