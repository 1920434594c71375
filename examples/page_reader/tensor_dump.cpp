#include "tensor_dump.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "corelane/base/file.h"

namespace page_reader {
namespace fs = std::filesystem;
namespace {

using corelane::Code;
using corelane::DType;
using corelane::Result;
using corelane::Status;

const char* npy_type(DType type) {
  switch (type) {
    case DType::kF32:
      return "<f4";
    case DType::kI32:
      return "<i4";
    case DType::kI64:
      return "<i8";
    case DType::kU8:
      return "|u1";
    default:
      return nullptr;
  }
}

std::string npy_header(const char* type, const corelane::Shape& shape) {
  std::string dims;
  for (std::size_t i = 0; i < shape.rank(); ++i) dims += fmt::format("{}, ", shape[i]);
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, dims);
  // Magic, version and length take 10 bytes; the whole is padded to a multiple of 64.
  const std::size_t length = (text.size() + 1 + 10 + 63) / 64 * 64 - 10;
  text.resize(length - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(length & 0xFFU);
  header += static_cast<char>(length >> 8U);
  return header + text;
}

}  // namespace

Status save_npy(const fs::path& path, const corelane::TensorView& tensor) {
  const char* type = npy_type(tensor.dtype);
  if (type == nullptr) {
    return error(Code::kUnsupported, "'{}': a tensor of type {} cannot be dumped", path.string(),
                 corelane::dtype_name(tensor.dtype));
  }
  CORELANE_ASSIGN(const std::size_t size, corelane::storage_bytes(tensor.shape, tensor.dtype, {}));
  if (size > tensor.size) {
    return error(Code::kInternal, "'{}': {} bytes for shape {}", path.string(), tensor.size,
                 tensor.shape.to_string());
  }
  const std::string header = npy_header(type, tensor.shape);
  corelane::ByteVector bytes(header.size() + size);
  std::memcpy(bytes.data(), header.data(), header.size());
  std::memcpy(bytes.data() + header.size(), tensor.data, size);
  return corelane::write_file_atomic(path, bytes);
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
