#include "cli/output_files.h"

#include <algorithm>

#include "cli/options.h"
#include "corelane/base/file.h"
#include "corelane/runtime/external_data.h"

namespace corelane::cli {
namespace {

namespace fs = std::filesystem;

Failure would_be_lost(const OutputFile& output, const std::string& what) {
  return error(Code::kInvalidArgument, "{} '{}' is {}; give another name so that it is kept",
               output.option, output.path.string(), what);
}

Status check_kept(const OutputFile& output, const ReadFiles& read) {
  std::error_code ec;
  // What is not there, or is no file, cannot be lost.
  if (!fs::is_regular_file(output.path, ec)) return {};
  for (const fs::path& model : read.models)
    for (const fs::path& file : external_data_of(model, read.data_root))
      if (fs::equivalent(file, output.path, ec))
        return would_be_lost(output, "external data of '" + model.string() + "'");
  for (const fs::path& file : read.files)
    // Also through links and by other spellings of the path.
    if (fs::equivalent(file, output.path, ec))
      return would_be_lost(output, "'" + file.string() + "', which this command reads");
  return {};
}

}  // namespace

std::vector<fs::path> external_data_of(const fs::path& model, const fs::path& data_root) {
  const auto bytes = MappedFile::open(model);
  if (!bytes) return {};
  return external_data_files(bytes->bytes(), data_root.empty() ? model.parent_path() : data_root);
}

std::vector<fs::path> possible_files(const std::vector<std::string>& items) {
  std::vector<fs::path> files;
  for (const std::string& item : items) {
    files.emplace_back(item);
    for (auto at = item.find('='); at != std::string::npos; at = item.find('=', at + 1))
      files.emplace_back(item.substr(at + 1));
  }
  return files;
}

Status check_outputs(const std::vector<OutputFile>& outputs, const ReadFiles& read) {
  std::vector<std::pair<fs::path, const OutputFile*>> taken;
  for (const OutputFile& output : outputs) {
    if (output.path.empty()) continue;
    CORELANE_TRY(check_kept(output, read));
    CORELANE_TRY(check_output(output.path.string(), output.option));
    std::error_code ec;
    // A device or a pipe takes the output of several options.
    if (fs::exists(output.path, ec) && !fs::is_regular_file(output.path, ec)) continue;
    const fs::path real = fs::weakly_canonical(fs::absolute(output.path, ec), ec);
    const auto other =
        std::ranges::find(taken, real, [](const auto& entry) { return entry.first; });
    if (other != taken.end()) {
      return error(Code::kInvalidArgument, "{} '{}' is the file of {} too; give each its own",
                   output.option, output.path.string(), other->second->option);
    }
    taken.emplace_back(real, &output);
  }
  return {};
}

}  // namespace corelane::cli
