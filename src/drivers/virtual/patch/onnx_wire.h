/// The protobuf wire format, as far as this driver needs it: walking a message field by field and
/// writing fields. The ONNX that reaches a driver is re-written in a few places (external data,
/// frozen shapes, exposed values); everything else is copied as it lies, unknown fields included.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"

namespace corelane::drivers::virtual_npu {

enum class WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

/// One field of a message; the spans point into the message.
struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::kVarint;
  std::uint64_t value = 0;  ///< kVarint, kFixed64, kFixed32.
  ByteSpan payload;         ///< kBytes.
  ByteSpan raw;             ///< Key and content, for copying.

  bool is_bytes(std::uint32_t n) const noexcept { return number == n && type == WireType::kBytes; }
  bool is_varint(std::uint32_t n) const noexcept {
    return number == n && type == WireType::kVarint;
  }
  std::string_view text() const noexcept { return as_string_view(payload); }
  std::int64_t integer() const noexcept { return static_cast<std::int64_t>(value); }
  float number_as_float() const noexcept;
};

/// Walks the fields of one message. kMalformed when it is truncated or holds a group.
class WireReader {
 public:
  explicit WireReader(ByteSpan message) noexcept : message_(message) {}
  bool at_end() const noexcept { return at_ >= message_.size(); }
  Result<WireField> next();
  /// A varint at the current position, for packed lists.
  Result<std::uint64_t> varint();

 private:
  ByteSpan message_;
  std::size_t at_ = 0;
};

inline void append_raw(std::string& out, ByteSpan bytes) { out.append(as_string_view(bytes)); }

inline void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80U) {
    out.push_back(static_cast<char>((value & 0x7FU) | 0x80U));
    value >>= 7U;
  }
  out.push_back(static_cast<char>(value));
}

inline void append_varint_field(std::string& out, std::uint32_t number, std::uint64_t value) {
  append_varint(out, std::uint64_t{number} << 3U);
  append_varint(out, value);
}

inline void append_bytes_field(std::string& out, std::uint32_t number, std::string_view payload) {
  append_varint(out, (std::uint64_t{number} << 3U) | 2U);
  append_varint(out, payload.size());
  out.append(payload);
}

}  // namespace corelane::drivers::virtual_npu
