/// The five models of the demo: where they lie, how they are compiled, loaded and shared out.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/device/device.h"
#include "corelane/runtime/program.h"

namespace page_reader {

enum class Role : std::uint8_t { kOrientation, kLayout, kDetection, kDirection, kRecognition };
inline constexpr std::size_t kRoles = 5;
inline constexpr std::size_t index_of(Role role) noexcept { return static_cast<std::size_t>(role); }

/// One model as its Python package carries it.
struct ModelSource {
  Role role{};
  std::string_view name;     ///< "detection": names the program file, tables and traces.
  std::string_view file;     ///< Below the folder of Python packages.
  std::string_view package;  ///< What to install when the file is missing.
  std::string_view input;    ///< Name of its input.
  corelane::Shape shape;     ///< What the input is fixed to; -1 stays open.
};
const std::array<ModelSource, kRoles>& model_sources();

/// One model on the device.
struct LoadedModel {
  std::string name;
  std::filesystem::path onnx;
  std::filesystem::path program_path;
  bool compiled_now = false;  ///< False: the program file of an earlier run was used.
  corelane::Program program;
  std::vector<corelane::Context> contexts;  ///< As many inferences can be under way at once.
  corelane::device::CoreSet cores;          ///< What each of them asks for.
};
using ModelSet = std::array<LoadedModel, kRoles>;

struct ModelSetOptions {
  std::filesystem::path models_dir;    ///< Folder of Python packages.
  std::filesystem::path programs_dir;  ///< Program files are kept here.
  std::shared_ptr<corelane::device::Device> device;
  std::string device_spec;          ///< The text `device` was opened by.
  std::size_t page_contexts = 1;    ///< Contexts of each model that looks at whole pages.
  std::size_t line_contexts = 4;    ///< Contexts of each model that looks at lines.
  std::size_t detection_cores = 1;  ///< Cores that one detection takes together.
};

/// Called when a step begins: its number, how many there are, and what it is ("compiling layout").
using StepCallback =
    std::function<void(std::size_t step, std::size_t steps, std::string_view what)>;

/// Finds every model, compiles those without a fitting program file, and loads them. A program
/// file fits when it was made from the same ONNX bytes and shapes by this version, and holds a
/// pre-compiled form for the device's engine. kNotFound names what to install.
corelane::Result<ModelSet> open_models(const ModelSetOptions& options, const StepCallback& step);

}  // namespace page_reader
