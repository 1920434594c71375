/// Tensors of any layout as .npy files.
#include <cerrno>
#include <cstdio>
#include <memory>

#include "adapters/rknn/checks/rknn_dump.h"
#include "base/process/errno_text.h"
#include "base/trust/file_size_signal.h"
#include "corelane/base/bytes.h"
#include "corelane/tensor/convert.h"
#include "corelane/tensor/npy_format.h"

namespace corelane::rknn {
namespace {

/// The type in the file: 16-bit floats, which not every reader knows, become f32.
DType stored_type(DType dtype) {
  if (dtype == DType::kI4) return DType::kI8;
  if (dtype == DType::kU4) return DType::kU8;
  const bool kept = is_integer(dtype) || dtype == DType::kF64 || dtype == DType::kBool;
  return kept ? dtype : DType::kF32;
}

}  // namespace

Status write_npy(const std::filesystem::path& path, const TensorView& tensor) {
  const DType stored = stored_type(tensor.dtype);
  const std::size_t elements = tensor.shape.elements().value_or(0);
  ByteVector bytes(dtype_bytes(stored, elements));
  const MutableTensorView plain{bytes.data(), bytes.size(), stored, tensor.shape, {}, {}};
  if (elements != 0) CORELANE_TRY(convert(tensor, plain));
  CORELANE_ASSIGN(const std::string text,
                  format_npy({bytes.data(), bytes.size(), stored, tensor.shape, {}, {}}));
  const NoFileSizeSignal failure_instead;
  // Not write_file_atomic: a folder that is missing is an error here.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"),
                                                             &std::fclose);
  if (file == nullptr || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0)
    return error(Code::kIo, "'{}' cannot be written: {}", path.string(), errno_text());
  return {};
}

}  // namespace corelane::rknn
