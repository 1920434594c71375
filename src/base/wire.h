/// The protobuf wire format: walking a message field by field, and writing fields. Every part of
/// the library that reads ONNX bytes without protobuf's classes reads them with this walker.
/// https://protobuf.dev/programming-guides/encoding
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"

namespace corelane {

/// How many messages may lie within each other, the outermost not counted: protobuf's own limit,
/// so that a walk and a parse refuse the same files.
inline constexpr int kMaxWireDepth = 100;

/// kMalformed where `depth`, the number of messages around one, is over kMaxWireDepth. A recursive
/// walk checks it once per level.
Status check_wire_depth(int depth);

/// A varint at the front of `bytes`, taken off; nullopt, and nothing taken, where it is cut off or
/// longer than ten bytes.
std::optional<std::uint64_t> take_varint(ByteSpan& bytes) noexcept;

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

/// Fields of one number and type that follow one another.
struct WireRepeats {
  std::size_t count = 0;
  ByteSpan raw;  ///< Keys and contents, for copying.
};

/// Walks the fields of one message, which must outlive the reader. Not for use by two threads.
class WireReader {
 public:
  explicit WireReader(ByteSpan message) noexcept : message_(message), rest_(message) {}
  bool at_end() const noexcept { return rest_.empty(); }
  /// Bytes from the start of the message to the next field.
  std::size_t offset() const noexcept { return message_.size() - rest_.size(); }
  /// kMalformed where the field is cut off, is a group, or has a number that protobuf does not
  /// allow: 0, or one whose key has more than 32 bits.
  Result<WireField> next();
  /// Takes what follows of fields with the number and type of `first`, which next() gave: the rest
  /// of a list whose numbers are not packed. None for kBytes. A damaged one is left to next().
  WireRepeats repeats(const WireField& first) noexcept;
  /// A varint at the current position, for packed lists. kMalformed where there is none.
  Result<std::uint64_t> varint();

 private:
  Result<std::uint64_t> fixed(std::size_t width);

  ByteSpan message_;
  ByteSpan rest_;
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

inline void append_bytes_field_key(std::string& out, std::uint32_t number) {
  append_varint(out, (std::uint64_t{number} << 3U) | 2U);
}

inline void append_bytes_field(std::string& out, std::uint32_t number, std::string_view payload) {
  append_bytes_field_key(out, number);
  append_varint(out, payload.size());
  out.append(payload);
}

/// A field of bytes whose payload is what is appended to `out` while this lives, fields within it
/// too. Its length is written at the end, in five bytes: a longer form than needed, which protobuf
/// reads. So nothing is copied from a message within a message into the next one.
class OpenBytesField {
 public:
  OpenBytesField(std::string& out, std::uint32_t number) : out_(out) {
    append_bytes_field_key(out, number);
    out.append(kLengthBytes, '\0');
    begin_ = out.size();
  }
  ~OpenBytesField() {
    std::uint64_t length = out_.size() - begin_;
    for (std::size_t i = begin_ - kLengthBytes; i < begin_; ++i, length >>= 7U)
      out_[i] = static_cast<char>((length & 0x7FU) | (i + 1 < begin_ ? 0x80U : 0U));
  }
  OpenBytesField(const OpenBytesField&) = delete;
  OpenBytesField& operator=(const OpenBytesField&) = delete;

 private:
  static constexpr std::size_t kLengthBytes = 5;  ///< 35 bits: protobuf's limit has 31.
  std::string& out_;
  std::size_t begin_ = 0;
};

}  // namespace corelane
