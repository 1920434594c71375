#include "onnx/graph/onnx_tensor.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "base/text_parts.h"
#include "corelane/tensor/convert.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

static_assert(std::endian::native == std::endian::little, "raw data are read in place");

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

/// Calls `f` with the field that typed data of this element type lie in; not for strings.
template <class F>
auto with_field(const T& tensor, const F& f) {
  switch (tensor.data_type()) {
    case T::FLOAT:
    case T::COMPLEX64:
      return f(tensor.float_data());
    case T::DOUBLE:
    case T::COMPLEX128:
      return f(tensor.double_data());
    case T::INT64:
      return f(tensor.int64_data());
    case T::UINT32:
    case T::UINT64:
      return f(tensor.uint64_data());
    default:
      return f(tensor.int32_data());
  }
}

/// Entries of that field.
std::size_t typed_size(const T& tensor) {
  const auto size = [](const auto& field) { return static_cast<std::size_t>(field.size()); };
  return tensor.data_type() == T::STRING ? size(tensor.string_data()) : with_field(tensor, size);
}

template <class To, class V>
std::string raw_as(const google::protobuf::RepeatedField<V>& field) {
  std::string raw(static_cast<std::size_t>(field.size()) * sizeof(To), '\0');
  std::size_t at = 0;
  for (const V value : field) {
    const To v = static_cast<To>(value);
    std::memcpy(raw.data() + at, &v, sizeof v);
    at += sizeof v;
  }
  return raw;
}

/// The low `size` bytes of each entry.
template <class V>
std::string low_bytes(const google::protobuf::RepeatedField<V>& field, std::size_t size) {
  if (size >= sizeof(V)) return raw_as<V>(field);
  if (size == 1) return raw_as<std::uint8_t>(field);
  return size == 2 ? raw_as<std::uint16_t>(field) : raw_as<std::uint32_t>(field);
}

/// A 16-bit float: a number that its bits stand for.
template <std::uint16_t (*kToBits)(float), float (*kFromBits)(std::uint16_t)>
struct Half {
  Half() = default;
  explicit Half(double value) : bits(kToBits(static_cast<float>(value))) {}
  operator double() const { return static_cast<double>(kFromBits(bits)); }
  std::uint16_t bits = 0;
};

/// Calls `f` with a number of the type that holds such elements in memory. What has none of its
/// own is taken byte by byte, bool among them.
template <class F>
auto with_number(std::int32_t onnx_type, const F& f) {
  switch (onnx_type) {
    case T::FLOAT:
      return f(float{});
    case T::DOUBLE:
      return f(double{});
    case T::FLOAT16:
      return f(Half<f32_to_f16, f16_to_f32>{});
    case T::BFLOAT16:
      return f(Half<f32_to_bf16, bf16_to_f32>{});
    case T::INT64:
      return f(std::int64_t{});
    case T::UINT64:
      return f(std::uint64_t{});
    case T::INT32:
      return f(std::int32_t{});
    case T::UINT32:
      return f(std::uint32_t{});
    case T::INT16:
      return f(std::int16_t{});
    case T::UINT16:
      return f(std::uint16_t{});
    case T::INT8:
      return f(std::int8_t{});
    default:
      return f(std::uint8_t{});
  }
}

/// The elements of a tensor that has passed make_raw as numbers of another type; none where its
/// place in the constants is not one.
template <class To>
std::vector<To> read_as(const T& tensor, ByteSpan constants) {
  ByteSpan raw = as_byte_span(tensor.raw_data());
  if (is_external(tensor)) raw = constants_slice(tensor, constants).value_or(ByteSpan{});
  return with_number(tensor.data_type(), [&]<class V>(V element) {
    std::vector<To> values(raw.size() / sizeof(V));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::memcpy(&element, raw.data() + i * sizeof(V), sizeof(V));
      values[i] = static_cast<To>(element);  // NOLINT(bugprone-signed-char-misuse): an int8's sign.
    }
    return values;
  });
}

T make_tensor(std::string name, std::int32_t onnx_type, const std::vector<std::int64_t>& dims,
              std::string raw) {
  T tensor;
  tensor.set_name(std::move(name));
  tensor.set_data_type(onnx_type);
  for (const auto d : dims) tensor.add_dims(d);
  tensor.set_raw_data(std::move(raw));
  return tensor;
}

/// 6-bit floats come one per entry and are stored four to three bytes.
std::string six_bits(const T& tensor) {
  const auto n = static_cast<std::size_t>(tensor.int32_data_size());
  std::string raw((n * 6 + 7) / 8, '\0');
  for (std::size_t i = 0; i < n; ++i) {
    const unsigned v = static_cast<unsigned>(tensor.int32_data(static_cast<int>(i))) & 0x3Fu;
    const std::size_t bit = i * 6;
    const unsigned spread = v << (bit % 8);
    raw[bit / 8] = static_cast<char>(static_cast<unsigned char>(raw[bit / 8]) | (spread & 0xFFu));
    if (spread > 0xFFu) raw[bit / 8 + 1] = static_cast<char>(spread >> 8);
  }
  return raw;
}

/// Clear() would keep the memory.
template <class V>
void release(google::protobuf::RepeatedField<V>& field) {
  google::protobuf::RepeatedField<V>().Swap(&field);
}

Result<std::uint64_t> whole_number(const T& tensor, const std::string& key,
                                   const std::string& text) {
  if (const auto number = parse_number<std::uint64_t>(text)) return *number;
  return error(Code::kMalformed, "tensor '{}': external data {} '{}' is not a whole number",
               tensor.name(), key, text);
}

/// Number of elements; kMalformed for negative dimensions or overflow.
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

}  // namespace

Result<std::size_t> tensor_bytes(const T& tensor) {
  CORELANE_ASSIGN(const std::size_t n, tensor_elements(tensor));
  if (tensor.data_type() == T::STRING) return std::size_t{0};
  const std::size_t bits = onnx_type_bits(tensor.data_type());
  // Strings have no size of their own; they never leave the message.
  if (bits == 0) {
    return error(Code::kMalformed, "tensor '{}' has the unknown element {}", tensor.name(),
                 onnx_type_name(tensor.data_type()));
  }
  std::size_t total = 0;
  if (__builtin_mul_overflow(n, bits, &total) || total > SIZE_MAX - 7)
    return error(Code::kMalformed, "tensor '{}': its size overflows", tensor.name());
  // Elements of less than a byte are packed; the last byte is padded.
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
  // Their bytes are looked at where the file is opened.
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
  // An empty raw_data beside typed data is not the data.
  if (tensor.has_raw_data() && (!tensor.raw_data().empty() || typed_size(tensor) == 0)) return;
  const std::size_t bits = onnx_type_bits(tensor.data_type());
  // An entry holds one element, the half of a complex one, or as many small ones as fill a byte.
  std::string raw = with_field(tensor, [&](const auto& field) {
    return bits == 6 ? six_bits(tensor) : low_bytes(field, std::max<std::size_t>(bits / 8, 1));
  });
  release(*tensor.mutable_float_data());
  release(*tensor.mutable_double_data());
  release(*tensor.mutable_int32_data());
  release(*tensor.mutable_int64_data());
  release(*tensor.mutable_uint64_data());
  tensor.set_raw_data(std::move(raw));
}

Result<ExternalPlace> external_place(const T& tensor) {
  ExternalPlace place;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") place.location = entry.value();
    if (entry.key() != "offset" && entry.key() != "length") continue;
    CORELANE_ASSIGN(const std::uint64_t n, whole_number(tensor, entry.key(), entry.value()));
    (entry.key() == "offset" ? place.offset : place.length.emplace()) = n;
  }
  return place;
}

Result<ByteSpan> constants_slice(const T& tensor, ByteSpan constants) {
  CORELANE_ASSIGN(const ExternalPlace place, external_place(tensor));
  CORELANE_ASSIGN(const std::size_t bytes, tensor_bytes(tensor));
  const std::uint64_t length = place.length.value_or(0);
  if (length != bytes) {
    return error(Code::kMalformed, "tensor '{}' needs {} bytes of constants, {} are declared",
                 tensor.name(), bytes, length);
  }
  return checked_slice(constants, place.offset, length, fmt::format("tensor '{}'", tensor.name()));
}

std::optional<std::vector<std::int64_t>> read_ints(const T& tensor, ByteSpan constants) {
  const DType dtype = dtype_from_onnx(tensor.data_type());
  // Elements of less than a byte are not unpacked.
  if (dtype_bits(dtype) < 8 || !(is_integer(dtype) || dtype == DType::kBool)) return std::nullopt;
  return read_as<std::int64_t>(tensor, constants);
}

std::optional<std::vector<double>> read_floats(const T& tensor, ByteSpan constants) {
  if (is_float(dtype_from_onnx(tensor.data_type()))) return read_as<double>(tensor, constants);
  const auto ints = read_ints(tensor, constants);
  if (!ints) return std::nullopt;
  return std::vector<double>(ints->begin(), ints->end());
}

T make_ints(std::string name, const std::vector<std::int64_t>& dims,
            const std::vector<std::int64_t>& values) {
  return make_tensor(std::move(name), T::INT64, dims,
                     std::string(as_string_view(std::as_bytes(std::span(values)))));
}

T make_values(std::string name, std::int32_t onnx_type, const std::vector<std::int64_t>& dims,
              const std::vector<double>& values) {
  std::string raw = with_number(onnx_type, [&]<class V>(V element) {
    std::string bytes(values.size() * sizeof(V), '\0');
    for (std::size_t i = 0; i < values.size(); ++i) {
      element = static_cast<V>(values[i]);
      std::memcpy(bytes.data() + i * sizeof(V), &element, sizeof(V));
    }
    return bytes;
  });
  return make_tensor(std::move(name), onnx_type, dims, std::move(raw));
}

}  // namespace corelane::onnx
