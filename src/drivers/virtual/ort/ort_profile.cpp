#include "drivers/virtual/ort/ort_profile.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/process/errno_text.h"
#include "base/text_parts.h"

namespace corelane::drivers::virtual_npu::ort {
namespace fs = std::filesystem;
namespace {

/// The engine holds a million events, and drops those that come after.
constexpr std::size_t kMostEvents = 900'000;
constexpr std::string_view kNodeEnding = "_kernel_time";

/// What stands between `before` and `after` in a line that the engine wrote; nothing where one of
/// them is missing.
std::optional<std::string_view> found_between(std::string_view line, std::string_view before,
                                              std::string_view after) {
  const auto begin = line.find(before);
  if (begin == std::string_view::npos) return std::nullopt;
  line.remove_prefix(begin + before.size());
  const auto end = line.find(after);
  if (end == std::string_view::npos) return std::nullopt;
  return line.substr(0, end);
}

/// A text of JSON, up to its closing quote; "\n" and "\u..." stay as they are written.
std::string text_of(std::string_view line, std::string_view before) {
  const auto begin = line.find(before);
  std::string text;
  if (begin == std::string_view::npos) return text;
  for (std::size_t i = begin + before.size(); i < line.size() && line[i] != '"'; ++i) {
    const bool escaped = line[i] == '\\' && i + 1 < line.size();
    if (escaped && (line[i + 1] == '"' || line[i + 1] == '\\')) ++i;
    text += line[i];
  }
  return text;
}

std::int64_t number_of(std::string_view line, std::string_view before) {
  const auto digits = found_between(line, before, ",");
  return digits ? parse_number<std::int64_t>(*digits).value_or(0) : 0;
}

struct Event {
  std::int64_t begin = 0;  ///< Microseconds.
  std::int64_t length = 0;
  std::string name;
  std::string_view line;
};

Event read_event(std::string_view line) {
  return {number_of(line, "\"ts\" :"), number_of(line, "\"dur\" :"), text_of(line, "\"name\" :\""),
          line};
}

/// The element type of the first output.
DType output_type(std::string_view line) {
  const auto name = found_between(line, "\"output_type_shape\" : [{\"", "\"");
  if (!name) return DType::kUndefined;
  if (*name == "float") return DType::kF32;
  if (*name == "double") return DType::kF64;
  return dtype_from_name(*name).value_or(DType::kUndefined);
}

device::LayerTime layer_of(const Event& event) {
  device::LayerTime layer;
  layer.name = event.name.substr(0, event.name.size() - kNodeEnding.size());
  layer.type = text_of(event.line, "\"op_name\" : \"");
  layer.kernel = text_of(event.line, "\"provider\" : \"");
  layer.dtype = output_type(event.line);
  layer.duration = std::chrono::microseconds(event.length);
  layer.executed = true;
  return layer;
}

bool holds_nodes(const device::LayerTime& layer) {
  return layer.type == "If" || layer.type == "Loop" || layer.type == "Scan";
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  // for_each_part() never fails where the function does not.
  (void)for_each_part(text, '\n', [&](std::string_view line) -> Status {
    lines.push_back(line);
    return {};
  });
  return lines;
}

/// A folder of this process alone, in which the engine opens its file. It goes as soon as the file
/// is open, so that nothing is left behind whatever happens.
class ProfileFolder {
 public:
  static Result<ProfileFolder> make() {
    std::error_code failed;
    fs::path above = fs::temp_directory_path(failed);
    if (failed) above = "/tmp";
    std::string name = (above / "corelane-layers-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      return error(Code::kIo,
                   "layer times need a folder in '{}', which cannot be made: {}; set TMPDIR to a "
                   "folder that can be written to",
                   above.string(), errno_text());
    return ProfileFolder(name);
  }
  ProfileFolder(ProfileFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ProfileFolder& operator=(ProfileFolder&&) = delete;
  ~ProfileFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }

  std::string prefix() const { return (path_ / "layers").string(); }
  /// The file that the engine has opened.
  Result<UniqueFd> open_file() const {
    std::error_code failed;
    for (fs::directory_iterator entry(path_, failed), end; !failed && entry != end;
         entry.increment(failed)) {
      UniqueFd file(::open(entry->path().c_str(), O_RDONLY | O_CLOEXEC));
      if (file) return file;
    }
    return error(Code::kIo, "the engine has not opened its file of layer times in '{}'",
                 path_.string());
  }

 private:
  explicit ProfileFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

Result<std::string> read_all(int file) {
  struct stat info {};
  if (::fstat(file, &info) != 0)
    return error(Code::kIo, "the file of layer times: {}", errno_text());
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got =
        ::pread(file, text.data() + have, text.size() - have, static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return error(Code::kIo, "the file of layer times ends early");
    have += static_cast<std::size_t>(got);
  }
  return text;
}

}  // namespace

/// From the end: a run's own event follows those of its nodes, and a node's those of the nodes
/// within it.
Result<std::vector<device::LayerTime>> read_ort_profile(std::string_view text, std::size_t runs) {
  const std::vector<std::string_view> lines = lines_of(text);
  const auto is_run = [](std::string_view line) {
    return line.find("\"name\" :\"model_run\"") != std::string_view::npos;
  };
  if (static_cast<std::size_t>(std::ranges::count_if(lines, is_run)) <
      std::max<std::size_t>(runs, 1))
    return error(Code::kEngineFailed,
                 "ONNX Runtime's profile does not hold the last run: it has room for a million "
                 "events, of which each node is one in each round of a loop; time fewer rounds");
  const auto last = std::find_if(lines.rbegin(), lines.rend(), is_run);
  std::vector<device::LayerTime> layers;
  std::int64_t within = std::numeric_limits<std::int64_t>::max();  ///< What began since is inside.
  for (auto line = last + 1; line != lines.rend() && !is_run(*line); ++line) {
    if (!line->starts_with("{\"cat\" : \"Node\"")) continue;
    const Event event = read_event(*line);
    if (!event.name.ends_with(kNodeEnding) || event.begin >= within) continue;
    layers.push_back(layer_of(event));
    if (holds_nodes(layers.back())) within = event.begin;
  }
  std::ranges::reverse(layers);
  return layers;
}

Result<std::unique_ptr<OrtProfile>> OrtProfile::make(const OrtLibrary& library,
                                                     OwnedSessionOptions options,
                                                     const MakeSession& make_session) {
  CORELANE_ASSIGN(const ProfileFolder folder, ProfileFolder::make());
  const std::string prefix = folder.prefix();
  CORELANE_TRY(library.call<entry::EnableProfiling>("layer times", Code::kEngineFailed,
                                                    options.get(), prefix.c_str()));
  CORELANE_ASSIGN(OwnedSession session, make_session(options.get()));
  CORELANE_ASSIGN(UniqueFd file, folder.open_file());
  return std::unique_ptr<OrtProfile>(new OrtProfile(library, std::move(file), std::move(session)));
}

bool OrtProfile::is_over() const noexcept {
  return times_.has_value() || failed_ || events_ > kMostEvents;
}

Result<std::vector<device::LayerTime>> OrtProfile::end() {
  constexpr std::string_view kWhat = "the engine's layer times";
  char* name = nullptr;
  CORELANE_TRY(library_.call<entry::SessionEndProfiling>(kWhat, Code::kEngineFailed, session_.get(),
                                                         library_.allocator(), &name));
  CORELANE_TRY(library_.call<entry::AllocatorFree>(kWhat, Code::kEngineFailed, library_.allocator(),
                                                   static_cast<void*>(name)));
  CORELANE_ASSIGN(const std::string text, read_all(file_.get()));
  return read_ort_profile(text, runs_);
}

Result<std::vector<device::LayerTime>> OrtProfile::times() {
  if (failed_) return error(Code::kWrongState, "no layer times: the last run failed");
  if (!times_) times_ = end();
  return *times_;
}

}  // namespace corelane::drivers::virtual_npu::ort
