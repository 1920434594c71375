#include "cli/output_files.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "cli/options.h"
#include "corelane/base/file.h"
#include "corelane/program/program_file.h"

namespace corelane::cli {
namespace {

namespace fs = std::filesystem;

/// Where the model of these bytes says that external data lie: entries of the key "location", as
/// every writer of protobuf writes them, with a value of less than 16 KiB.
std::set<std::string_view> data_locations(std::string_view model) {
  constexpr std::string_view kKey = "\x0a\x08location\x12";
  std::set<std::string_view> locations;
  for (auto at = model.find(kKey); at != std::string_view::npos; at = model.find(kKey, at + 1)) {
    const std::string_view value = model.substr(at + kKey.size());
    if (value.size() < 2) break;
    // The length is a varint: seven bits a byte, the highest bit says that more follow.
    const auto low = static_cast<unsigned char>(value[0]);
    const auto high = static_cast<unsigned char>(value[1]);
    const bool two = (low & 0x80U) != 0;
    const std::size_t length = (low & 0x7FU) | (two ? (high & 0x7FU) << 7U : 0U);
    locations.insert(value.substr(two ? 2 : 1, length));
  }
  return locations;
}

/// Whether `path` is a file of external data of `model`, by whatever links.
bool is_data_of(const fs::path& path, const fs::path& model, const fs::path& data_root) {
  const auto file = MappedFile::open(model);
  if (!file || detect_file_kind(file->bytes()) != FileKind::kOnnx) return false;
  const fs::path root = data_root.empty() ? model.parent_path() : data_root;
  return std::ranges::any_of(data_locations(as_string_view(file->bytes())),
                             [&](std::string_view location) {
                               std::error_code ec;
                               return fs::equivalent(root / location, path, ec);
                             });
}

Failure would_be_lost(const OutputFile& output, const std::string& what) {
  return error(Code::kInvalidArgument, "{} '{}' is {}; give another name so that it is kept",
               output.option, output.path.string(), what);
}

Status check_kept(const OutputFile& output, const ReadFiles& read) {
  std::error_code ec;
  if (!fs::is_regular_file(output.path, ec)) return {};
  for (const fs::path& file : read.files)
    // Also through links and by other spellings of the path.
    if (fs::equivalent(file, output.path, ec))
      return would_be_lost(output, "'" + file.string() + "', which this command reads");
  for (const fs::path& model : read.models)
    if (is_data_of(output.path, model, read.data_root))
      return would_be_lost(output, "external data of '" + model.string() + "'");
  return {};
}

}  // namespace

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
