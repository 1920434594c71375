#include "tensor_dump.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "corelane/base/file.h"
#include "corelane/tensor/npy_format.h"

namespace page_reader {
namespace fs = std::filesystem;

using corelane::Code;
using corelane::Result;
using corelane::Status;

Status save_npy(const fs::path& path, const corelane::TensorView& tensor) {
  const auto file = corelane::format_npy(tensor);
  if (!file) return file.error().wrap(fmt::format("'{}' cannot be dumped", path.string()));
  return corelane::write_file_atomic(path, corelane::as_byte_span(*file));
}

struct TensorDump::Impl {
  fs::path folder;
  nlohmann::json inferences = nlohmann::json::array();

  std::string name(const LoadedModel& model, std::uint32_t item, const std::string& what) const {
    return fmt::format("{}-{:02}-{}.npy", model.name, item, what);
  }
};

TensorDump::TensorDump(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TensorDump::~TensorDump() = default;

Result<std::unique_ptr<TensorDump>> TensorDump::create(const fs::path& folder) {
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem)
    return corelane::error(Code::kIo, "cannot create '{}': {}", folder.string(), problem.message());
  auto impl = std::make_unique<Impl>();
  impl->folder = folder;
  return std::unique_ptr<TensorDump>(new TensorDump(std::move(impl)));
}

Status TensorDump::input(const LoadedModel& model, std::uint32_t item, corelane::Context& context) {
  CORELANE_ASSIGN(const corelane::TensorView view, context.input(0));
  return save_npy(impl_->folder / impl_->name(model, item, "in"), view);
}

Status TensorDump::outputs(const LoadedModel& model, std::uint32_t item,
                           const corelane::Context& context, const std::string& decoded_json) {
  nlohmann::json names = nlohmann::json::array();
  for (std::size_t k = 0; k < context.outputs().size(); ++k) {
    CORELANE_ASSIGN(const corelane::TensorView view, context.output(k));
    names.push_back(impl_->name(model, item, fmt::format("out{}", k)));
    CORELANE_TRY(save_npy(impl_->folder / names.back().get<std::string>(), view));
  }
  impl_->inferences.push_back({{"model", model.name},
                               {"item", item},
                               {"onnx", fs::absolute(model.onnx).string()},
                               {"input", impl_->name(model, item, "in")},
                               {"outputs", names},
                               {"decoded", nlohmann::json::parse(decoded_json)}});
  return {};
}

Result<fs::path> TensorDump::finish() const {
  const fs::path path = impl_->folder / "dump.json";
  const std::string text = nlohmann::json{{"inferences", impl_->inferences}}.dump(2) + "\n";
  CORELANE_TRY(corelane::write_file_atomic(path, corelane::as_byte_span(text)));
  return path;
}

}  // namespace page_reader
