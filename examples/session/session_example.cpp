#include "session_example.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <system_error>

#include "page_reader_options.h"
#include "tensor_dump.h"

namespace session_example {

namespace fs = std::filesystem;
using corelane::Code;
using corelane::Feed;
using corelane::Result;
using corelane::Status;

void add_device_option(CLI::App& app, Arguments& arguments, std::string_view none) {
  app.add_option("--device", arguments.device,
                 fmt::format("such as virtual:generic:4 (default: {})", none));
}

void add_options(CLI::App& app, Arguments& arguments) {
  add_device_option(app, arguments);
  app.add_option("--dump", arguments.dump, "folder for model inputs and outputs, as NumPy files");
}

int run(CLI::App& app, int argc, char** argv, const std::function<Status()>& body) {
  try {
    app.parse(argc, argv);
    const Status status = body();
    if (!status.ok())
      std::fputs(fmt::format("{}: error: {}\n", app.get_name(), status.to_string()).c_str(),
                 stderr);
    return page_reader::exit_code(status);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? page_reader::kExitOk : page_reader::kExitUsage;
  } catch (const std::exception& problem) {
    std::fputs(fmt::format("{}: error: {}\n", app.get_name(), problem.what()).c_str(), stderr);
    return page_reader::kExitInternal;
  }
}

corelane::SessionOptions pixel_options(const Arguments& arguments,
                                       const page_reader::ModelInput& scale) {
  corelane::SessionOptions options;
  options.load.device = arguments.device;
  options.load.import.mean[""] = scale.mean;
  options.load.import.std[""] = scale.std;
  options.layout = corelane::InputLayout::kNhwc;
  options.input_rules = corelane::InputRules::kLenient;
  options.normalize = true;
  return options;
}

Feed feed_of(const page_reader::Picture& pixels) {
  return feed_of(pixels.bytes(), {1, pixels.height(), pixels.width(), 3});
}

Feed feed_of(std::span<const std::uint8_t> bytes, const corelane::Shape& shape) {
  corelane::TensorView view;
  view.data = bytes.data();
  view.size = bytes.size();
  view.dtype = corelane::DType::kU8;
  view.shape = shape;
  return {{"", view, nullptr}};
}

std::span<const float> floats(const corelane::Tensor& tensor) {
  if (tensor.dtype != corelane::DType::kF32) return {};
  return {static_cast<const float*>(tensor.data.get()), tensor.size / sizeof(float)};
}

Result<std::string> character_listing(const corelane::Session& session) {
  const auto& metadata = session.description().metadata;
  const auto found = metadata.find("character");
  if (found == metadata.end())
    return corelane::error(Code::kUnsupportedModel,
                           "the model has no metadata entry 'character'; its classes are expected "
                           "there, as PP-OCR models have them");
  return found->second;
}

Result<std::vector<fs::path>> pictures_in(const fs::path& path) {
  if (fs::is_regular_file(path)) return std::vector{path};
  std::vector<fs::path> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(path, code)) {
    const fs::path kind = entry.path().extension();
    if (kind == ".png" || kind == ".jpg" || kind == ".jpeg") found.push_back(entry.path());
  }
  if (found.empty())
    return corelane::error(Code::kNotFound,
                           "'{}' is not a folder with PNG or JPEG files; "
                           "examples/python/clip_to_pictures.py makes one of a clip",
                           path.string());
  std::sort(found.begin(), found.end());
  return found;
}

Status dump(const Arguments& arguments, std::string_view name, std::size_t number, const Feed& feed,
            const corelane::Tensor& output) {
  if (arguments.dump.empty()) return {};
  std::error_code ignored;  // A missing folder is reported by the file that cannot be made in it.
  fs::create_directories(arguments.dump, ignored);
  const fs::path stem = arguments.dump / fmt::format("{}-{:05}", name, number);
  CORELANE_TRY(page_reader::save_npy(stem.string() + "-in.npy", feed.front().view));
  return page_reader::save_npy(stem.string() + "-out.npy", output.view());
}

std::string tasks_by_core(const corelane::SessionStatistics& statistics) {
  std::string text;
  for (std::size_t i = 0; i < statistics.tasks_by_context.size(); ++i)
    text += fmt::format("{}core {}: {}", i == 0 ? "" : ", ", statistics.core_of_context[i],
                        statistics.tasks_by_context[i]);
  return text;
}

}  // namespace session_example
