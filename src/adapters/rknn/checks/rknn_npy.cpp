/// The .npy format, version 1.0: magic, a header in Python's syntax, the elements.
#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "adapters/rknn/checks/rknn_dump.h"
#include "corelane/base/bytes.h"
#include "corelane/tensor/convert.h"

namespace corelane::rknn {
namespace {

struct NpyType {
  DType stored;
  const char* text;
};

NpyType npy_type(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return {dtype, "<f8"};
    case DType::kI8:
      return {dtype, "|i1"};
    case DType::kU8:
      return {dtype, "|u1"};
    case DType::kI16:
      return {dtype, "<i2"};
    case DType::kU16:
      return {dtype, "<u2"};
    case DType::kI32:
      return {dtype, "<i4"};
    case DType::kU32:
      return {dtype, "<u4"};
    case DType::kI64:
      return {dtype, "<i8"};
    case DType::kU64:
      return {dtype, "<u8"};
    case DType::kBool:
      return {dtype, "|b1"};
    case DType::kI4:
      return {DType::kI8, "|i1"};
    case DType::kU4:
      return {DType::kU8, "|u1"};
    default:
      return {DType::kF32, "<f4"};
  }
}

std::string npy_header(const char* type, const Shape& shape) {
  std::string dims;
  for (const std::int64_t d : shape.dims()) dims += fmt::format("{}, ", d);
  if (shape.rank() > 1) dims.resize(dims.size() - 2);
  if (shape.rank() == 1) dims.resize(dims.size() - 1);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, dims);
  constexpr std::size_t kPrefix = 10;
  header.resize((kPrefix + header.size() + 1 + 63) / 64 * 64 - kPrefix - 1, ' ');
  header += '\n';
  std::string prefix("\x93NUMPY\x01\x00", 8);
  prefix += static_cast<char>(header.size() & 0xFF);
  prefix += static_cast<char>(header.size() >> 8);
  return prefix + header;
}

}  // namespace

Status write_npy(const std::filesystem::path& path, const TensorView& tensor) {
  const NpyType type = npy_type(tensor.dtype);
  const std::size_t elements = static_cast<std::size_t>(tensor.shape.elements().value_or(0));
  ByteVector bytes(dtype_bytes(type.stored, elements));
  if (elements != 0) {
    MutableTensorView plain;
    plain.data = bytes.data();
    plain.size = bytes.size();
    plain.dtype = type.stored;
    plain.shape = tensor.shape;
    CORELANE_TRY(convert(tensor, plain));
  }
  const std::string header = npy_header(type.text, tensor.shape);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"),
                                                             &std::fclose);
  if (file == nullptr ||
      std::fwrite(header.data(), 1, header.size(), file.get()) != header.size() ||
      std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size() ||
      std::fflush(file.get()) != 0)
    return error(Code::kIo, "'{}' cannot be written: {}", path.string(), std::strerror(errno));
  return {};
}

}  // namespace corelane::rknn
