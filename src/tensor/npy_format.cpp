#include "corelane/tensor/npy_format.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <utility>

#include "corelane/tensor/element_bits.h"

namespace corelane {
namespace {

/// Type strings of numpy. It has none for the types of ml_dtypes, which are bytes of no type, but
/// for one. The first row of a type is the one that is written, the last of a text the one that is
/// read.
constexpr std::pair<std::string_view, DType> kDescr[] = {
    {"<f4", DType::kF32},        {"<f2", DType::kF16},    {"<f8", DType::kF64},
    {"<V2", DType::kBF16},       {"|i1", DType::kI8},     {"|u1", DType::kU8},
    {"<i2", DType::kI16},        {"<u2", DType::kU16},    {"<i4", DType::kI32},
    {"<u4", DType::kU32},        {"<i8", DType::kI64},    {"<u8", DType::kU64},
    {"|b1", DType::kBool},       {"|V2", DType::kBF16},   {"|V1", DType::kF8E4M3FN},
    {"|V1", DType::kF8E4M3FNUZ}, {"|V1", DType::kF8E5M2}, {"|V1", DType::kF8E5M2FNUZ},
    {"|V1", DType::kF8E8M0},     {"|V1", DType::kF4E2M1}, {"|V1", DType::kU8},
    {"<V1", DType::kU8},         {"|f1", DType::kU8},     {"<f1", DType::kU8}};

/// The text between the quotes (or up to the next comma) after 'key'.
std::string_view field(std::string_view header, std::string_view key) {
  const auto at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) return {};
  auto rest = header.substr(at + key.size() + 3);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return rest;
}

Result<Shape> parse_tuple(std::string_view text, const std::string& name) {
  std::vector<std::int64_t> dims;
  const auto close = text.find(')');
  if (text.empty() || text.front() != '(' || close == std::string_view::npos)
    return error(Code::kMalformed, "{}: .npy header without a shape tuple", name);
  text = text.substr(1, close - 1);
  const char* p = text.data();
  const char* end = p + text.size();
  while (p != end) {
    if (*p == ' ' || *p == ',') {
      ++p;
      continue;
    }
    std::int64_t v = 0;
    const auto [next, ec] = std::from_chars(p, end, v);
    if (ec != std::errc() || v < 0)
      return error(Code::kMalformed, "{}: .npy shape '({})' is not a tuple of sizes", name, text);
    dims.push_back(v);
    p = next;
  }
  return Shape(std::move(dims));
}

Result<std::string_view> read_header(ByteReader& reader) {
  CORELANE_ASSIGN(auto magic, reader.read_bytes(6));
  if (as_string_view(magic) != "\x93NUMPY") return error(Code::kMalformed, "magic bytes missing");
  CORELANE_ASSIGN(auto major, reader.read<std::uint8_t>());
  CORELANE_ASSIGN([[maybe_unused]] auto minor, reader.read<std::uint8_t>());
  // Version 1 has a length of 16 bits, later ones of 32.
  CORELANE_ASSIGN(auto size, reader.read_bytes(major == 1 ? 2 : 4));
  std::uint32_t length = 0;
  std::memcpy(&length, size.data(), size.size());
  CORELANE_ASSIGN(auto header, reader.read_bytes(length));
  return as_string_view(header);
}

/// What holds elements of less than a byte, one a byte.
DType wide_type(DType dtype) {
  if (dtype == DType::kI4 || dtype == DType::kI2) return DType::kI8;
  return dtype == DType::kU4 || dtype == DType::kU2 ? DType::kU8 : dtype;
}

/// Integers keep their value, so the sign is repeated in the upper bits.
Result<ByteVector> widened(const TensorView& view) {
  CORELANE_ASSIGN(ByteVector elements, unpack_bits(view));
  if (wide_type(view.dtype) != DType::kI8) return elements;
  const auto sign = static_cast<std::byte>(1U << (dtype_bits(view.dtype) - 1));
  const auto upper = static_cast<std::byte>(0xFFU << dtype_bits(view.dtype));
  for (std::byte& element : elements)
    if ((element & sign) != std::byte{}) element |= upper;
  return elements;
}

}  // namespace

Result<NpyArray> npy_as(NpyArray array, DType dtype) {
  if (!is_opaque(dtype) || (array.dtype != DType::kU8 && array.dtype != DType::kI8)) {
    return error(Code::kTypeMismatch,
                 "an array of {} does not hold the bits of {}; give one of bytes (.view('u1') of "
                 "an array of ml_dtypes)",
                 dtype_name(array.dtype), dtype_name(dtype));
  }
  CORELANE_ASSIGN(array.bytes, pack_bits(array.bytes, dtype));
  array.dtype = dtype;
  return array;
}

Result<NpyArray> parse_npy(ByteSpan bytes, const std::string& name) {
  ByteReader reader(bytes);
  const auto read = read_header(reader);
  if (!read)
    return error(
        read.error().wrap(fmt::format("{}: not a .npy file; numpy.save writes one", name)));
  const std::string_view header = *read;
  const auto descr = field(header, "descr");
  NpyArray array;
  // The whole word between the quotes: '<f16' is no '<f1'.
  for (const auto& [text, dtype] : kDescr)
    if (descr.size() > 4 && descr[4] == descr[0] && descr.substr(1, 3) == text) array.dtype = dtype;
  if (array.dtype == DType::kUndefined) {
    return error(Code::kUnsupported,
                 "{}: .npy type {} is not read; little-endian numbers and bool are (convert with "
                 "astype)",
                 name, descr.substr(0, descr.find(',')));
  }
  if (field(header, "fortran_order").starts_with("True")) {
    return error(Code::kUnsupported, "{}: .npy is in Fortran order; save numpy.ascontiguousarray",
                 name);
  }
  CORELANE_ASSIGN(array.shape, parse_tuple(field(header, "shape"), name));
  const auto count = array.shape.elements();
  // No element is less than a byte, so that the size of all does not overflow. Nothing is allocated
  // for a size that the file does not have.
  if (!count || *count > reader.remaining() ||
      dtype_bytes(array.dtype, *count) > reader.remaining()) {
    return error(Code::kMalformed, "{}: .npy of shape {} has only {} bytes of data", name,
                 array.shape.to_string(), reader.remaining());
  }
  CORELANE_ASSIGN(auto data, reader.read_bytes(dtype_bytes(array.dtype, *count)));
  array.bytes.assign(data.begin(), data.end());
  return array;
}

Result<std::string> format_npy(const TensorView& view) {
  const auto count = view.shape.elements();
  if (!count) {
    return error(Code::kInvalidArgument, "a .npy file of shape {}, which has open dimensions",
                 view.shape.to_string());
  }
  if (const std::size_t needed = dtype_bytes(view.dtype, *count);
      view.size < needed || (view.data == nullptr && needed != 0)) {
    return error(Code::kInvalidArgument, "a .npy file of shape {} from {} bytes; {} are needed",
                 view.shape.to_string(), view.data == nullptr ? 0 : view.size, needed);
  }
  TensorView source = view;
  ByteVector wide;
  // numpy has no type of less than a byte.
  if (dtype_bits(view.dtype) < 8) {
    CORELANE_ASSIGN(wide, widened(view));
    source.dtype = wide_type(view.dtype);
    source.data = wide.data();
  }
  std::string_view descr;
  for (const auto& [text, dtype] : kDescr)
    if (dtype == source.dtype && descr.empty()) descr = text;
  if (descr.empty())
    return error(Code::kUnsupported, "{} has no .npy type", dtype_name(view.dtype));
  std::string dims;
  // As numpy writes a tuple: "()", "(4,)", "(2, 3)".
  for (const auto d : view.shape.dims()) dims += fmt::format("{}{}", dims.empty() ? "" : ", ", d);
  if (view.shape.rank() == 1) dims += ",";
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, dims);
  // Magic, version and length take 10 bytes; the data begin at a multiple of 64.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  // Of what was widened each element has its byte.
  const std::size_t size = wide.empty() ? dtype_bytes(source.dtype, *count) : wide.size();
  file.append(static_cast<const char*>(source.data), size);
  return file;
}

}  // namespace corelane
