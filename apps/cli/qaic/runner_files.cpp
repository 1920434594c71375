#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "cli/command.h"
#include "cli/qaic/runner_inputs.h"
#include "corelane/base/file.h"

namespace corelane::cli {
namespace {

namespace fs = std::filesystem;

/// The most bytes of a list or a JSON file; what is larger is not one.
constexpr std::size_t kMostList = std::size_t{64} << 20;

std::vector<BufferFile> as_files(const std::vector<std::string>& paths) {
  std::vector<BufferFile> files;
  for (const std::string& path : paths) files.push_back({path, std::nullopt});
  return files;
}

/// -i: the files of one inference, or of several with --auto-batch-input.
Result<std::vector<InferenceFiles>> of_files(const ProgramDescription& program,
                                             const RunnerOptions& o) {
  const std::vector<std::string>& files = o.sources.files;
  const std::size_t count = program.inputs.size();
  const bool fits = count > 0 && files.size() % count == 0;
  if (!fits || (files.size() != count && !o.sources.auto_batch)) {
    return error(Code::kInvalidArgument,
                 "-i is given {} times, but the program has {} input{}; give a file for each, in "
                 "their order",
                 files.size(), count, count == 1 ? "" : "s");
  }
  std::vector<InferenceFiles> list;
  for (std::size_t at = 0; at < files.size(); at += count) {
    const auto first = files.begin() + static_cast<std::ptrdiff_t>(at);
    list.push_back({as_files({first, first + static_cast<std::ptrdiff_t>(count)}), {}});
  }
  return list;
}

/// Files of a folder in the order of their names.
Result<std::vector<InferenceFiles>> of_directory(const ProgramDescription& program,
                                                 const std::string& directory) {
  if (program.inputs.size() != 1) {
    return error(Code::kInvalidArgument,
                 "--aic-batch-input-directory is for programs with one input, this one has {}; "
                 "write an --aic-batch-input-file-list",
                 program.inputs.size());
  }
  std::error_code ec;
  std::vector<std::string> paths;
  for (fs::directory_iterator at(directory, ec), end; !ec && at != end; at.increment(ec)) {
    std::error_code kind;
    if (at->is_regular_file(kind)) paths.push_back(at->path().string());
  }
  if (ec) {
    return error(Code::kIo, "--aic-batch-input-directory '{}' cannot be read: {}", directory,
                 ec.message());
  }
  if (paths.empty())
    return error(Code::kNotFound, "--aic-batch-input-directory '{}' has no files in it", directory);
  std::ranges::sort(paths);
  std::vector<InferenceFiles> list;
  for (std::string& path : paths) list.push_back({as_files({std::move(path)}), {}});
  return list;
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// A line of a list: a file for each input, or for each buffer.
Result<InferenceFiles> of_line(const ProgramDescription& program, const std::string& line,
                               const std::string& where) {
  std::vector<std::string> paths;
  std::istringstream parts(line);
  for (std::string part; std::getline(parts, part, ',');) paths.push_back(trimmed(part));
  const std::size_t inputs = program.inputs.size();
  const std::size_t all = inputs + program.outputs.size();
  if (paths.size() != inputs && paths.size() != all) {
    return error(Code::kInvalidArgument,
                 "{} names {} file{}; give one for each of {} inputs, or for each of {} inputs and "
                 "outputs",
                 where, paths.size(), paths.size() == 1 ? "" : "s", inputs, all);
  }
  if (std::ranges::find(paths, std::string()) != paths.end())
    return error(Code::kInvalidArgument, "{} names an empty file; give a path", where);
  const auto middle = paths.begin() + static_cast<std::ptrdiff_t>(inputs);
  return InferenceFiles{as_files({paths.begin(), middle}), as_files({middle, paths.end()})};
}

Result<std::vector<InferenceFiles>> of_list(const ProgramDescription& program,
                                            const std::string& path) {
  CORELANE_ASSIGN(const ByteVector bytes, read_file(path, kMostList));
  std::istringstream lines{std::string(as_string_view(bytes))};
  std::vector<InferenceFiles> list;
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (trimmed(line).empty()) continue;
    CORELANE_ASSIGN(auto files, of_line(program, line, fmt::format("'{}' line {}", path, number)));
    list.push_back(std::move(files));
  }
  if (list.empty()) return error(Code::kInvalidArgument, "'{}' has no line that names files", path);
  return list;
}

/// The place of a buffer by its name, or by the order of the entries.
Result<std::size_t> place_of(const std::vector<IoEntry>& entries, const Json& buffer,
                             std::size_t next, const std::string& where) {
  if (!buffer.contains("map-to")) {
    if (next < entries.size()) return next;
    return error(Code::kInvalidArgument, "{}: there are {} buffers of this direction", where,
                 entries.size());
  }
  const auto name = buffer["map-to"].get<std::string>();
  const auto found =
      std::ranges::find(entries, name, [](const IoEntry& entry) { return entry.desc.name; });
  if (found != entries.end()) return static_cast<std::size_t>(found - entries.begin());
  std::string names;
  for (const IoEntry& e : entries) names += (names.empty() ? "'" : ", '") + e.desc.name + "'";
  return error(Code::kNotFound, "{}: no buffer '{}' of this direction; there are {}", where, name,
               names);
}

/// A conversion by the JSON library would cut fractions.
Result<std::vector<std::int64_t>> dims_of(const Json& dims, const std::string& where) {
  std::vector<std::int64_t> found;
  if (!dims.is_array())
    return error(Code::kInvalidArgument, "{}: dims is {}; a list is allowed", where, dims.dump());
  for (const Json& dim : dims) {
    if (!dim.is_number_integer() || dim.get<std::int64_t>() < 0)
      return error(Code::kInvalidArgument, "{}: {} in dims; whole numbers from 0 on are allowed",
                   where, dim.dump());
    found.push_back(dim.get<std::int64_t>());
  }
  return found;
}

Result<BufferFile> buffer_file(const Json& buffer, const TensorDesc& desc,
                               const std::string& where) {
  BufferFile file;
  if (buffer.contains("dims")) {
    auto dims = dims_of(buffer["dims"], where);
    if (!dims) return error(dims.error());
    file.dims = *std::move(dims);
  }
  if (!file.left_out()) file.path = buffer.at("path").get<std::string>();
  const std::size_t own = dtype_bytes(desc.dtype, 1);
  if (!file.left_out() && buffer.contains("elem-size") &&
      buffer["elem-size"].get<std::size_t>() != own) {
    return error(Code::kShapeMismatch, "{}: elements of {} bytes, but '{}' is {} of {}", where,
                 buffer["elem-size"].get<std::size_t>(), desc.name, dtype_name(desc.dtype), own);
  }
  return file;
}

Result<InferenceFiles> of_entry(const ProgramDescription& program, const Json& entry,
                                const std::string& place) {
  InferenceFiles files;
  files.inputs.resize(program.inputs.size());
  std::vector<BufferFile> outputs(program.outputs.size());
  std::size_t next_in = 0, next_out = 0;
  std::set<std::size_t> given_in, given_out;
  for (std::size_t i = 0; i < entry.size(); ++i) {
    const Json& buffer = entry[i];
    const std::string where = fmt::format("{}, buffer {}", place, i);
    const auto direction = buffer.value("io-direction", "in");
    if (direction != "in" && direction != "out") {
      return error(Code::kInvalidArgument, "{}: io-direction '{}'; allowed are in, out", where,
                   direction);
    }
    const bool in = direction == "in";
    const auto& entries = in ? program.inputs : program.outputs;
    // Each buffer counts, also one that is placed by its name.
    CORELANE_ASSIGN(const std::size_t at,
                    place_of(entries, buffer, in ? next_in++ : next_out++, where));
    if (!(in ? given_in : given_out).insert(at).second)
      return error(Code::kInvalidArgument, "{}: buffer '{}' stands there twice; name each once",
                   where, entries[at].desc.name);
    CORELANE_ASSIGN((in ? files.inputs : outputs)[at],
                    buffer_file(buffer, entries[at].desc, where));
  }
  const auto named = [](const BufferFile& file) { return !file.path.empty(); };
  // Without a file there is nothing to compare with.
  if (std::ranges::any_of(outputs, named)) files.outputs = std::move(outputs);
  return files;
}

/// {"IO-files": [[{"path", "dims", "elem-size", "io-direction", "map-to"}, ...], ...]}
Result<std::vector<InferenceFiles>> of_json(const ProgramDescription& program,
                                            const std::string& path) {
  CORELANE_ASSIGN(const ByteVector bytes, read_file(path, kMostList));
  std::vector<InferenceFiles> list;
  try {
    // The library throws for text that is no JSON, and wherever a value is of another type than
    // asked.
    const Json document = Json::parse(as_string_view(bytes));
    for (const Json& entry : document.at("IO-files")) {
      CORELANE_ASSIGN(auto files, of_entry(program, entry,
                                           fmt::format("'{}', inference {}", path, list.size())));
      list.push_back(std::move(files));
    }
  } catch (const Json::exception& e) {
    return error(Code::kInvalidArgument,
                 "'{}' is not a list of buffers: {}; write {{\"IO-files\": [[{{\"path\": ..., "
                 "\"io-direction\": \"in\", \"map-to\": ...}}, ...], ...]}}",
                 path, e.what());
  }
  if (list.empty()) return error(Code::kInvalidArgument, "'{}' lists no inference", path);
  return list;
}

}  // namespace

Result<std::vector<InferenceFiles>> runner_files(const ProgramDescription& program,
                                                 const RunnerOptions& options) {
  const RunnerSources& s = options.sources;
  if (!s.files.empty()) return of_files(program, options);
  if (!s.directory.empty()) return of_directory(program, s.directory);
  if (!s.list.empty()) return of_list(program, s.list);
  if (!s.json.empty()) return of_json(program, s.json);
  return std::vector<InferenceFiles>();
}

}  // namespace corelane::cli
