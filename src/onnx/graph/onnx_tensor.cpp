#include "onnx/graph/onnx_tensor.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "corelane/tensor/convert.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

std::string tensor_text(const T& tensor, std::string_view owner) {
  if (!tensor.name().empty()) return fmt::format("tensor '{}'", tensor.name());
  return fmt::format("a tensor of {}", owner);
}

/// How many entries of a typed data field the elements take.
std::size_t typed_entries(std::int32_t type, std::size_t elements) {
  switch (type) {
    case T::COMPLEX64:
    case T::COMPLEX128:
      return elements * 2;
    case T::UINT4:
    case T::INT4:
    case T::FLOAT4E2M1:
      return (elements + 1) / 2;
    case T::UINT2:
    case T::INT2:
      return (elements + 3) / 4;
    default:
      return elements;
  }
}

/// The field that typed data of this element type lie in: its size.
std::size_t typed_size(const T& tensor) {
  switch (tensor.data_type()) {
    case T::FLOAT:
    case T::COMPLEX64:
      return static_cast<std::size_t>(tensor.float_data_size());
    case T::DOUBLE:
    case T::COMPLEX128:
      return static_cast<std::size_t>(tensor.double_data_size());
    case T::INT64:
      return static_cast<std::size_t>(tensor.int64_data_size());
    case T::UINT32:
    case T::UINT64:
      return static_cast<std::size_t>(tensor.uint64_data_size());
    case T::STRING:
      return static_cast<std::size_t>(tensor.string_data_size());
    default:
      return static_cast<std::size_t>(tensor.int32_data_size());
  }
}

template <class To, class Field>
void append_as(std::string& raw, const Field& field) {
  raw.resize(static_cast<std::size_t>(field.size()) * sizeof(To));
  std::size_t at = 0;
  for (const auto value : field) {
    const To v = static_cast<To>(value);
    std::memcpy(raw.data() + at, &v, sizeof v);
    at += sizeof v;
  }
}

/// 6-bit floats come one per entry and are stored four to three bytes.
void append_six_bits(std::string& raw, const T& tensor) {
  const auto n = static_cast<std::size_t>(tensor.int32_data_size());
  raw.assign((n * 6 + 7) / 8, '\0');
  for (std::size_t i = 0; i < n; ++i) {
    const unsigned v = static_cast<unsigned>(tensor.int32_data(static_cast<int>(i))) & 0x3Fu;
    const std::size_t bit = i * 6;
    const unsigned spread = v << (bit % 8);
    raw[bit / 8] = static_cast<char>(static_cast<unsigned char>(raw[bit / 8]) | (spread & 0xFFu));
    if (spread > 0xFFu) raw[bit / 8 + 1] = static_cast<char>(spread >> 8);
  }
}

/// Clear() would keep the memory.
template <class V>
void release(google::protobuf::RepeatedField<V>& field) {
  google::protobuf::RepeatedField<V>().Swap(&field);
}

template <class V>
V load(const std::byte* at) {
  V v;
  std::memcpy(&v, at, sizeof v);
  return v;
}

std::uint64_t parse_number(const std::string& text, bool& good) {
  std::uint64_t v = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  good = ec == std::errc() && end == text.data() + text.size();
  return v;
}

}  // namespace

Result<std::size_t> tensor_elements(const T& tensor) {
  std::size_t n = 1;
  for (const std::int64_t d : tensor.dims()) {
    if (d < 0) {
      return error(Code::kMalformed, "tensor '{}' has the dimension {}; 0 or more is allowed",
                   tensor.name(), d);
    }
  }
  for (const std::int64_t d : tensor.dims()) {
    if (__builtin_mul_overflow(n, static_cast<std::size_t>(d), &n)) {
      return error(Code::kMalformed, "tensor '{}': the product of its dimensions overflows",
                   tensor.name());
    }
  }
  return n;
}

Result<std::size_t> tensor_bytes(const T& tensor) {
  CORELANE_ASSIGN(const std::size_t n, tensor_elements(tensor));
  if (tensor.data_type() == T::STRING) return std::size_t{0};
  const std::size_t bits = onnx_type_bits(tensor.data_type());
  if (bits == 0) {
    return error(Code::kMalformed, "tensor '{}' has the unknown element {}", tensor.name(),
                 onnx_type_name(tensor.data_type()));
  }
  std::size_t total = 0;
  if (__builtin_mul_overflow(n, bits, &total) || total > SIZE_MAX - 7)
    return error(Code::kMalformed, "tensor '{}': its size overflows", tensor.name());
  return (total + 7) / 8;
}

bool is_external(const T& tensor) { return tensor.data_location() == T::EXTERNAL; }

Status check_tensor(const T& tensor, std::string_view owner) {
  if (tensor.has_segment()) {
    return error(Code::kMalformed, "{} is stored in segments, which ONNX no longer defines",
                 tensor_text(tensor, owner));
  }
  CORELANE_ASSIGN(const std::size_t elements, tensor_elements(tensor));
  CORELANE_ASSIGN(const std::size_t bytes, tensor_bytes(tensor));
  if (is_external(tensor)) return {};
  if (tensor.has_raw_data() && (tensor.data_type() != T::STRING)) {
    // An empty raw_data beside typed data is what some writers leave.
    if (tensor.raw_data().size() == bytes) return {};
    if (!tensor.raw_data().empty() || typed_size(tensor) == 0) {
      return error(Code::kMalformed, "{}: {} needs {} bytes of {}, the file holds {}",
                   tensor_text(tensor, owner), "its shape", bytes,
                   onnx_type_name(tensor.data_type()), tensor.raw_data().size());
    }
  }
  const std::size_t wanted = typed_entries(tensor.data_type(), elements);
  if (typed_size(tensor) != wanted) {
    return error(Code::kMalformed, "{}: its shape needs {} values of {}, the file holds {}",
                 tensor_text(tensor, owner), wanted, onnx_type_name(tensor.data_type()),
                 typed_size(tensor));
  }
  return {};
}

void make_raw(T& tensor) {
  if (is_external(tensor) || tensor.data_type() == T::STRING) return;
  if (tensor.has_raw_data() && (!tensor.raw_data().empty() || typed_size(tensor) == 0)) return;
  std::string raw;
  switch (tensor.data_type()) {
    case T::FLOAT:
    case T::COMPLEX64:
      append_as<float>(raw, tensor.float_data());
      break;
    case T::DOUBLE:
    case T::COMPLEX128:
      append_as<double>(raw, tensor.double_data());
      break;
    case T::INT64:
      append_as<std::int64_t>(raw, tensor.int64_data());
      break;
    case T::UINT64:
      append_as<std::uint64_t>(raw, tensor.uint64_data());
      break;
    case T::UINT32:
      append_as<std::uint32_t>(raw, tensor.uint64_data());
      break;
    case T::INT32:
      append_as<std::int32_t>(raw, tensor.int32_data());
      break;
    case T::INT16:
    case T::UINT16:
    case T::FLOAT16:
    case T::BFLOAT16:
      append_as<std::uint16_t>(raw, tensor.int32_data());
      break;
    case T::FLOAT6E2M3:
    case T::FLOAT6E3M2:
      append_six_bits(raw, tensor);
      break;
    default:
      append_as<std::uint8_t>(raw, tensor.int32_data());
      break;
  }
  release(*tensor.mutable_float_data());
  release(*tensor.mutable_double_data());
  release(*tensor.mutable_int32_data());
  release(*tensor.mutable_int64_data());
  release(*tensor.mutable_uint64_data());
  tensor.set_raw_data(std::move(raw));
}

Result<ByteSpan> constants_slice(const T& tensor, ByteSpan constants) {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  bool good = true;
  for (const auto& entry : tensor.external_data()) {
    bool parsed = true;
    if (entry.key() == "offset") offset = parse_number(entry.value(), parsed);
    if (entry.key() == "length") length = parse_number(entry.value(), parsed);
    good = good && parsed;
  }
  CORELANE_ASSIGN(const std::size_t bytes, tensor_bytes(tensor));
  if (!good || length != bytes) {
    return error(Code::kMalformed, "tensor '{}' needs {} bytes of constants, {} are declared",
                 tensor.name(), bytes, length);
  }
  return checked_slice(constants, offset, length, fmt::format("tensor '{}'", tensor.name()));
}

ByteSpan raw_bytes(const T& tensor, ByteSpan constants) {
  if (!is_external(tensor)) return as_byte_span(tensor.raw_data());
  auto slice = constants_slice(tensor, constants);
  return slice ? *slice : ByteSpan{};
}

std::optional<std::vector<std::int64_t>> read_ints(const T& tensor, ByteSpan constants) {
  const ByteSpan raw = raw_bytes(tensor, constants);
  const std::size_t bits = onnx_type_bits(tensor.data_type());
  const DType dtype = dtype_from_onnx(tensor.data_type());
  if (bits < 8 || !(is_integer(dtype) || dtype == DType::kBool)) return std::nullopt;
  std::vector<std::int64_t> values;
  values.reserve(raw.size() / (bits / 8));
  for (std::size_t i = 0; i + bits / 8 <= raw.size(); i += bits / 8) {
    const std::byte* at = raw.data() + i;
    switch (dtype) {
      case DType::kI8:
        values.push_back(load<std::int8_t>(at));
        break;
      case DType::kI16:
        values.push_back(load<std::int16_t>(at));
        break;
      case DType::kU16:
        values.push_back(load<std::uint16_t>(at));
        break;
      case DType::kI32:
        values.push_back(load<std::int32_t>(at));
        break;
      case DType::kU32:
        values.push_back(load<std::uint32_t>(at));
        break;
      case DType::kI64:
      case DType::kU64:
        values.push_back(load<std::int64_t>(at));
        break;
      default:
        values.push_back(load<std::uint8_t>(at));
        break;
    }
  }
  return values;
}

std::optional<std::vector<double>> read_floats(const T& tensor, ByteSpan constants) {
  const DType dtype = dtype_from_onnx(tensor.data_type());
  if (!is_float(dtype)) {
    const auto ints = read_ints(tensor, constants);
    if (!ints) return std::nullopt;
    return std::vector<double>(ints->begin(), ints->end());
  }
  const ByteSpan raw = raw_bytes(tensor, constants);
  const std::size_t size = dtype_bits(dtype) / 8;
  std::vector<double> values;
  values.reserve(raw.size() / size);
  for (std::size_t i = 0; i + size <= raw.size(); i += size) {
    const std::byte* at = raw.data() + i;
    switch (dtype) {
      case DType::kF32:
        values.push_back(load<float>(at));
        break;
      case DType::kF64:
        values.push_back(load<double>(at));
        break;
      case DType::kF16:
        values.push_back(f16_to_f32(load<std::uint16_t>(at)));
        break;
      default:
        values.push_back(bf16_to_f32(load<std::uint16_t>(at)));
        break;
    }
  }
  return values;
}

T make_ints(std::string name, const std::vector<std::int64_t>& dims,
            const std::vector<std::int64_t>& values) {
  T tensor;
  tensor.set_name(std::move(name));
  tensor.set_data_type(T::INT64);
  for (const auto d : dims) tensor.add_dims(d);
  std::string raw;
  append_as<std::int64_t>(raw, values);
  tensor.set_raw_data(std::move(raw));
  return tensor;
}

T make_values(std::string name, std::int32_t onnx_type, const std::vector<std::int64_t>& dims,
              const std::vector<double>& values) {
  T tensor;
  tensor.set_name(std::move(name));
  tensor.set_data_type(onnx_type);
  for (const auto d : dims) tensor.add_dims(d);
  std::string raw;
  std::vector<std::uint16_t> halves;
  switch (onnx_type) {
    case T::FLOAT:
      append_as<float>(raw, values);
      break;
    case T::DOUBLE:
      append_as<double>(raw, values);
      break;
    case T::FLOAT16:
      for (const double v : values) halves.push_back(f32_to_f16(static_cast<float>(v)));
      append_as<std::uint16_t>(raw, halves);
      break;
    case T::BFLOAT16:
      for (const double v : values) halves.push_back(f32_to_bf16(static_cast<float>(v)));
      append_as<std::uint16_t>(raw, halves);
      break;
    case T::INT64:
      append_as<std::int64_t>(raw, values);
      break;
    case T::UINT64:
      append_as<std::uint64_t>(raw, values);
      break;
    case T::INT32:
      append_as<std::int32_t>(raw, values);
      break;
    case T::UINT32:
      append_as<std::uint32_t>(raw, values);
      break;
    case T::INT16:
      append_as<std::int16_t>(raw, values);
      break;
    case T::UINT16:
      append_as<std::uint16_t>(raw, values);
      break;
    case T::INT8:
      append_as<std::int8_t>(raw, values);
      break;
    default:
      append_as<std::uint8_t>(raw, values);
      break;
  }
  tensor.set_raw_data(std::move(raw));
  return tensor;
}

}  // namespace corelane::onnx
