#include "corelane/base/bytes.h"

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

Status ByteReader::seek(std::size_t offset) {
  if (offset > bytes_.size()) {
    return error(Code::kMalformed, "offset {} lies beyond the end of {} bytes", offset,
                 bytes_.size());
  }
  offset_ = offset;
  return {};
}

Result<ByteSpan> checked_slice(ByteSpan bytes, std::uint64_t offset, std::uint64_t size,
                               std::string_view what) {
  if (offset > bytes.size() || size > bytes.size() - offset) {
    return error(Code::kMalformed, "{}: {} bytes at offset {} do not lie within {} bytes", what,
                 size, offset, bytes.size());
  }
  return bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

}  // namespace corelane
