/// Views of bytes, a bounds-checked little-endian reader, CRC-32C and a content hash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/status.h"

namespace corelane {

using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;
using ByteVector = std::vector<std::byte>;

/// The bytes of a text, which must outlive the span.
inline ByteSpan as_byte_span(std::string_view s) noexcept { return std::as_bytes(std::span(s)); }
/// The bytes as text, which they must outlive.
inline std::string_view as_string_view(ByteSpan b) noexcept {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

/// Reads little-endian scalars and slices from the front; every read is checked. Not shared
/// between threads. The bytes must outlive the reader.
class CORELANE_API ByteReader {
 public:
  /// Reads from the start of `bytes`, which must outlive the reader.
  explicit ByteReader(ByteSpan bytes) noexcept : bytes_(bytes) {}
  /// Bytes read so far.
  std::size_t offset() const noexcept { return offset_; }
  /// Bytes left to read.
  std::size_t remaining() const noexcept { return bytes_.size() - offset_; }

  /// The next sizeof(T) bytes as a scalar; kMalformed past the end, with the offset in the message.
  template <class T>
  Result<T> read() {
    static_assert(std::is_trivially_copyable_v<T>);
    CORELANE_ASSIGN(const ByteSpan slice, read_bytes(sizeof(T)));
    T value;
    std::memcpy(&value, slice.data(), sizeof(T));
    return value;
  }
  /// The next `n` bytes, not copied.
  Result<ByteSpan> read_bytes(std::size_t n);

 private:
  ByteSpan bytes_;
  std::size_t offset_ = 0;
};

/// `bytes[offset, offset + size)`, or kMalformed naming `what` when that leaves the span (no
/// overflow for any values).
CORELANE_API Result<ByteSpan> checked_slice(ByteSpan bytes, std::uint64_t offset,
                                            std::uint64_t size, std::string_view what);

/// CRC-32C (Castagnoli, RFC 3720), hardware instructions where the CPU has them. `seed` is the CRC
/// of what came before.
CORELANE_API std::uint32_t crc32c(ByteSpan bytes, std::uint32_t seed = 0) noexcept;

/// 128-bit XXH3 of the bytes as 32 hex digits: a key for caches, not a signature.
CORELANE_API std::string content_hash(ByteSpan bytes);

}  // namespace corelane
