#include "drivers/virtual/patch/onnx_wire.h"

#include <cstring>
#include <limits>

namespace corelane::drivers::virtual_npu {

float WireField::number_as_float() const noexcept {
  const auto bits = static_cast<std::uint32_t>(value);
  float result = 0;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

Result<std::uint64_t> WireReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at_ >= message_.size())
      return error(Code::kMalformed, "ONNX model: a number is cut off at byte {} of a message",
                   at_);
    const auto byte = static_cast<std::uint8_t>(message_[at_++]);
    value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
    if ((byte & 0x80U) == 0) return value;
  }
  return error(Code::kMalformed, "ONNX model: a number of more than ten bytes at byte {}", at_);
}

Result<WireField> WireReader::next() {
  const std::size_t begin = at_;
  CORELANE_ASSIGN(const std::uint64_t key, varint());
  // A reader that keeps 32 bits of a key would see another field than we do.
  if (key > std::numeric_limits<std::uint32_t>::max())
    return error(Code::kMalformed, "ONNX model: the field key {} at byte {} has more than 32 bits",
                 key, begin);
  WireField field;
  field.number = static_cast<std::uint32_t>(key >> 3U);
  const auto fixed = [&](std::size_t width) -> Result<std::uint64_t> {
    if (message_.size() - at_ < width)
      return error(Code::kMalformed, "ONNX model: field {} is cut off at byte {}", field.number,
                   at_);
    std::uint64_t value = 0;
    std::memcpy(&value, message_.data() + at_, width);
    at_ += width;
    return value;
  };
  switch (key & 7U) {
    case 0: {
      CORELANE_ASSIGN(field.value, varint());
      field.type = WireType::kVarint;
      break;
    }
    case 1: {
      CORELANE_ASSIGN(field.value, fixed(8));
      field.type = WireType::kFixed64;
      break;
    }
    case 2: {
      CORELANE_ASSIGN(const std::uint64_t size, varint());
      if (size > message_.size() - at_)
        return error(Code::kMalformed, "ONNX model: field {} claims {} bytes, {} are left",
                     field.number, size, message_.size() - at_);
      field.type = WireType::kBytes;
      field.payload = message_.subspan(at_, static_cast<std::size_t>(size));
      at_ += static_cast<std::size_t>(size);
      break;
    }
    case 5: {
      CORELANE_ASSIGN(field.value, fixed(4));
      field.type = WireType::kFixed32;
      break;
    }
    default:
      return error(Code::kMalformed,
                   "ONNX model: field {} has wire type {}, allowed are 0, 1, 2, 5", field.number,
                   key & 7U);
  }
  field.raw = message_.subspan(begin, at_ - begin);
  return field;
}

}  // namespace corelane::drivers::virtual_npu
