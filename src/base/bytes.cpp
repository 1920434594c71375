#include "corelane/base/bytes.h"

#include <xxhash.h>

namespace corelane {

Result<ByteSpan> ByteReader::read_bytes(std::size_t n) {
  if (n > remaining()) {
    return error(Code::kMalformed, "{} bytes wanted at offset {}, but only {} of {} are left", n,
                 offset_, remaining(), bytes_.size());
  }
  const ByteSpan slice = bytes_.subspan(offset_, n);
  offset_ += n;
  return slice;
}

Result<ByteSpan> checked_slice(ByteSpan bytes, std::uint64_t offset, std::uint64_t size,
                               std::string_view what) {
  // The difference, since the sum of two numbers from a file may overflow.
  if (offset > bytes.size() || size > bytes.size() - offset) {
    return error(Code::kMalformed, "{}: {} bytes at offset {} do not lie within {} bytes", what,
                 size, offset, bytes.size());
  }
  return bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

std::string content_hash(ByteSpan bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace corelane
