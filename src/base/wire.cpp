#include "base/wire.h"

#include <cstring>
#include <limits>

namespace corelane {

Status check_wire_depth(int depth) {
  if (depth <= kMaxWireDepth) return {};
  return error(Code::kMalformed, "protobuf messages are nested deeper than {}", kMaxWireDepth)
      .with(Detail::kLimit, kMaxWireDepth);
}

std::optional<std::uint64_t> take_varint(ByteSpan& bytes) noexcept {
  // Most keys, and sizes of names, take one byte.
  if (!bytes.empty() && (bytes[0] & std::byte{0x80}) == std::byte{0}) {
    const auto value = std::to_integer<std::uint64_t>(bytes[0]);
    bytes = bytes.subspan(1);
    return value;
  }
  std::uint64_t value = 0;
  // Ten bytes of 7 bits hold 64; the bits of the tenth beyond them are dropped, as protobuf does.
  for (std::size_t i = 0; i < 10 && i < bytes.size(); ++i) {
    const auto byte = std::to_integer<std::uint64_t>(bytes[i]);
    value |= (byte & 0x7FU) << (7 * i);
    if ((byte & 0x80U) == 0) {
      bytes = bytes.subspan(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

float WireField::number_as_float() const noexcept {
  const auto bits = static_cast<std::uint32_t>(value);
  float result = 0;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

Result<std::uint64_t> WireReader::varint() {
  if (const auto value = take_varint(rest_)) return *value;
  return error(Code::kMalformed, "a protobuf number is cut off or longer than ten bytes at byte {}",
               offset());
}

Result<std::uint64_t> WireReader::fixed(std::size_t width) {
  // The encoding is little-endian, as all our machines are.
  if (rest_.size() < width)
    return error(Code::kMalformed, "a protobuf number of {} bytes is cut off at byte {}", width,
                 offset());
  std::uint64_t value = 0;
  std::memcpy(&value, rest_.data(), width);
  rest_ = rest_.subspan(width);
  return value;
}

Result<WireField> WireReader::next() {
  const std::size_t begin = offset();
  CORELANE_ASSIGN(const std::uint64_t key, varint());
  // A reader that keeps 32 bits of a longer key would see another field.
  if (key > std::numeric_limits<std::uint32_t>::max())
    return error(Code::kMalformed, "the protobuf key {} at byte {} has more than 32 bits", key,
                 begin);
  WireField field;
  field.number = static_cast<std::uint32_t>(key >> 3U);
  field.type = static_cast<WireType>(key & 7U);
  if (field.number == 0)
    return error(Code::kMalformed, "a protobuf field at byte {} has the number 0", begin);
  switch (field.type) {
    case WireType::kVarint: {
      CORELANE_ASSIGN(field.value, varint());
      break;
    }
    case WireType::kFixed64: {
      CORELANE_ASSIGN(field.value, fixed(8));
      break;
    }
    case WireType::kFixed32: {
      CORELANE_ASSIGN(field.value, fixed(4));
      break;
    }
    case WireType::kBytes: {
      CORELANE_ASSIGN(const std::uint64_t size, varint());
      // Compared as 64 bits, before it is a size.
      if (size > rest_.size())
        return error(Code::kMalformed, "protobuf field {} at byte {} claims {} bytes, {} are left",
                     field.number, begin, size, rest_.size());
      field.payload = rest_.first(static_cast<std::size_t>(size));
      rest_ = rest_.subspan(static_cast<std::size_t>(size));
      break;
    }
    default:
      return error(Code::kMalformed,
                   "protobuf field {} at byte {} has wire type {}, allowed are 0, 1, 2, 5",
                   field.number, begin, key & 7U);
  }
  // Last: the offset is now that of the next field.
  field.raw = message_.subspan(begin, offset() - begin);
  return field;
}

WireRepeats WireReader::repeats(const WireField& first) noexcept {
  // Keys of one byte are those that lists of numbers have in practice.
  if (first.type == WireType::kBytes || first.number > 15) return {};
  const auto key = std::byte{
      static_cast<std::uint8_t>((first.number << 3U) | static_cast<std::uint32_t>(first.type))};
  const ByteSpan begin = rest_;
  WireRepeats repeats;
  // By pointers: a list may have millions of numbers.
  const std::byte* at = begin.data();
  const std::byte* const end = at + begin.size();
  if (first.type == WireType::kVarint) {
    const std::byte* next = at;
    for (; end - at > 1 && *at == key; at = next, ++repeats.count) {
      next = at + 2;  // Most take one byte.
      if ((at[1] & std::byte{0x80}) == std::byte{0}) continue;
      ByteSpan content(at + 1, end);
      if (!take_varint(content)) break;
      next = content.data();
    }
  } else {
    const std::ptrdiff_t step = first.type == WireType::kFixed64 ? 9 : 5;
    for (; end - at >= step && *at == key; at += step) ++repeats.count;
  }
  rest_ = ByteSpan(at, end);
  repeats.raw = begin.first(begin.size() - rest_.size());
  return repeats;
}

}  // namespace corelane
