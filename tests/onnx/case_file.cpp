#include "case_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "corelane/base/file.h"
#include "corelane/tensor/convert.h"
#include "corelane/tensor/value.h"

namespace node_tests {
namespace {

using corelane::DType;
using corelane::error;
using corelane::Result;

Result<CaseTensor> read_tensor(corelane::ByteReader& reader) {
  CaseTensor t;
  CORELANE_ASSIGN(t.onnx_type, reader.read<std::uint32_t>());
  t.dtype = corelane::dtype_from_onnx(t.onnx_type);
  CORELANE_ASSIGN(const auto rank, reader.read<std::uint32_t>());
  std::vector<std::int64_t> dims;
  for (std::uint32_t i = 0; i < rank; ++i) {
    CORELANE_ASSIGN(const auto d, reader.read<std::int64_t>());
    dims.push_back(d);
  }
  t.shape = corelane::Shape(std::move(dims));
  CORELANE_ASSIGN(const auto size, reader.read<std::uint64_t>());
  CORELANE_ASSIGN(const auto bytes, reader.read_bytes(size));
  t.data.assign(bytes.begin(), bytes.end());
  return t;
}

template <class T>
T at(const CaseTensor& t, std::size_t i) {
  T v;
  std::memcpy(&v, t.data.data() + i * sizeof(T), sizeof(T));
  return v;
}

double value_of(const CaseTensor& t, std::size_t i) {
  switch (t.dtype) {
    case DType::kF32:
      return static_cast<double>(at<float>(t, i));
    case DType::kF64:
      return at<double>(t, i);
    case DType::kF16:
      return static_cast<double>(corelane::f16_to_f32(at<std::uint16_t>(t, i)));
    default:
      return static_cast<double>(corelane::bf16_to_f32(at<std::uint16_t>(t, i)));
  }
}

bool close(double expected, double got, double rtol, double atol) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  if (std::isinf(expected) || std::isinf(got)) return expected == got;
  return std::abs(expected - got) <= atol + rtol * std::abs(expected);
}

/// The one of these floats with several forms that are not numbers; any of them will do.
bool is_nan_of_e5m2(std::byte bits) { return (bits & std::byte{0x7F}) > std::byte{0x7C}; }

}  // namespace

List read_list(const std::filesystem::path& path) {
  List list;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(": ");
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    list[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return list;
}

std::vector<std::string> list_cases(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ec))
    if (entry.path().extension() == ".data") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

Result<Case> read_case(const std::filesystem::path& folder, const std::string& name) {
  Case c;
  c.name = name;
  CORELANE_ASSIGN(c.model, corelane::read_file(folder / (name + ".onnx")));
  CORELANE_ASSIGN(const auto bytes, corelane::read_file(folder / (name + ".data")));
  corelane::ByteReader reader(bytes);
  CORELANE_ASSIGN(const auto magic, reader.read<std::uint32_t>());
  CORELANE_ASSIGN(const auto version, reader.read<std::uint32_t>());
  if (std::memcmp(&magic, "CLTC", 4) != 0 || version != 2)
    return error(corelane::Code::kMalformed, "{}.data is not a case of version 2", name);
  CORELANE_ASSIGN(c.opset, reader.read<std::int64_t>());
  CORELANE_ASSIGN(c.rtol, reader.read<double>());
  CORELANE_ASSIGN(c.atol, reader.read<double>());
  CORELANE_ASSIGN(const auto inputs, reader.read<std::uint32_t>());
  CORELANE_ASSIGN(const auto outputs, reader.read<std::uint32_t>());
  for (std::uint32_t i = 0; i < inputs + outputs; ++i) {
    CORELANE_ASSIGN(auto tensor, read_tensor(reader));
    (i < inputs ? c.inputs : c.outputs).push_back(std::move(tensor));
  }
  return c;
}

std::string compare_kinds(const CaseTensor& expected, const CaseTensor& got) {
  if (expected.dtype != got.dtype) {
    return fmt::format("is {}, expected {}", corelane::dtype_name(got.dtype),
                       corelane::dtype_name(expected.dtype));
  }
  if (expected.shape != got.shape) {
    return fmt::format("has shape {}, expected {}", got.shape.to_string(),
                       expected.shape.to_string());
  }
  if (expected.data.size() > got.data.size())
    return fmt::format("has {} bytes, expected {}", got.data.size(), expected.data.size());
  return "";
}

std::string compare(const CaseTensor& expected, const CaseTensor& got, double rtol, double atol) {
  if (std::string difference = compare_kinds(expected, got); !difference.empty()) return difference;
  const std::size_t elements = expected.shape.elements().value_or(0);
  if (corelane::is_float(expected.dtype)) {
    // Two units in the last place of a bfloat16, as the onnx package's own runner has it.
    if (expected.dtype == DType::kBF16) rtol = std::max(rtol, 0.015625);
    for (std::size_t i = 0; i < elements; ++i) {
      const double e = value_of(expected, i);
      const double g = value_of(got, i);
      if (!close(e, g, rtol, atol)) return fmt::format("[{}] is {}, expected {}", i, g, e);
    }
    return "";
  }
  for (std::size_t i = 0; i < expected.data.size(); ++i) {
    // The last byte of elements of less than 8 bits may have room for more of them.
    const std::size_t left = elements * corelane::dtype_bits(expected.dtype) - i * 8;
    const std::byte mask = std::byte{0xFF} >> (left < 8 ? 8 - left : 0);
    if (expected.dtype == DType::kF8E5M2 && is_nan_of_e5m2(expected.data[i]) &&
        is_nan_of_e5m2(got.data[i])) {
      continue;
    }
    if ((expected.data[i] & mask) != (got.data[i] & mask)) {
      return fmt::format("byte {} is {}, expected {}", i, static_cast<int>(got.data[i]),
                         static_cast<int>(expected.data[i]));
    }
  }
  return "";
}

namespace {

using corelane::ValueKind;
using corelane::ValueView;

CaseTensor tensor_of(const ValueView& value) {
  const corelane::TensorView view = value.tensor();
  CaseTensor t;
  t.dtype = view.dtype;
  t.shape = view.shape;
  const auto* const bytes = static_cast<const std::byte*>(view.data);
  t.data.assign(bytes, bytes + view.size);
  return t;
}

std::string compare_values(const ValueView& expected, const ValueView& got, double rtol,
                           double atol) {
  const bool same = expected.kind() == got.kind() && expected.dtype() == got.dtype() &&
                    expected.size() == got.size() && expected.shape() == got.shape();
  if (!same)
    return fmt::format("is a {} of {}, expected {} of {}", got.to_string(), got.size(),
                       expected.to_string(), expected.size());
  if (expected.kind() == ValueKind::kTensor && expected.dtype() != DType::kString)
    return compare(tensor_of(expected), tensor_of(got), rtol, atol);
  if (expected.strings() != got.strings()) return "has other strings than expected";
  const auto wanted = expected.items();
  const auto items = got.items();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::string difference = compare_values(wanted[i], items[i], rtol, atol);
    if (!difference.empty()) return fmt::format("value {} {}", i, difference);
  }
  return "";
}

}  // namespace

std::string compare_flat(const CaseTensor& expected, const CaseTensor& got, double rtol,
                         double atol) {
  const auto wanted = corelane::read_value(expected.data);
  const auto value = corelane::read_value(got.data);
  if (!wanted) return "is expected as " + wanted.error().to_string();
  if (!value) return "is " + value.error().to_string();
  return compare_values(*wanted, *value, rtol, atol);
}

}  // namespace node_tests
