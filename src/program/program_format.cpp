#include "program/program_format.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace corelane::program {

static_assert(std::endian::native == std::endian::little, "the header is read in place");

namespace {

Status check_version(const FixedHeader& h, std::string_view name) {
  if (h.major != kMajor || h.major == 0) {
    return error(Code::kVersionMismatch,
                 "{} has program format {}.{}; corelane {} reads format {}.x: {}, or use the "
                 "corelane that wrote it",
                 name, h.major, h.minor, CORELANE_VERSION_STRING, kMajor, kRecompile);
  }
  // A later minor version may set flags of the upper half: those only inform. Flags of this version
  // and of the lower half must all be known.
  const std::uint32_t unknown = (h.newer() ? h.flags & kRequiredFlags : h.flags) & ~kKnownFlags;
  if (unknown != 0) {
    return error(h.newer() ? Code::kVersionMismatch : Code::kMalformed,
                 "{} (format {}.{}) sets flags 0x{:08x}, of which corelane {} does not know "
                 "0x{:08x}: {}",
                 name, h.major, h.minor, h.flags, CORELANE_VERSION_STRING, unknown, kRecompile);
  }
  return {};
}

Status check_reserved(const FixedHeader& h, std::string_view name) {
  // Zero now, so that a later version may give them a meaning that old files do not have.
  const auto used = [](std::byte b) { return b != std::byte{}; };
  if (h.newer() || std::ranges::none_of(h.reserved, used)) return {};
  return error(Code::kMalformed, "{}: reserved bytes {} to {} of the header are not zero: {}", name,
               offsetof(FixedHeader, reserved), kFixedCrcAt - 1, kRecompile);
}

Status check_sizes(ByteSpan file, const FixedHeader& h, std::string_view name) {
  // Tells a copy that was cut off before any of its segments is read.
  if (h.file_size != file.size()) {
    return error(Code::kMalformed,
                 "{} has {} bytes, but its header says {}: it was {}; copy it again or {}", name,
                 file.size(), h.file_size, file.size() < h.file_size ? "truncated" : "appended to",
                 kRecompile);
  }
  // The file has 64 bytes at least: the caller has asked.
  if (h.header_size == 0 || h.header_size > kMaxHeaderBytes ||
      h.header_size > file.size() - kFixedHeaderBytes) {
    return error(Code::kMalformed,
                 "{}: a description of {} bytes does not fit ({} bytes follow the header, the "
                 "limit is {}): {}",
                 name, h.header_size, file.size() - kFixedHeaderBytes, kMaxHeaderBytes, kRecompile);
  }
  return {};
}

}  // namespace

void encode_fixed_header(FixedHeader header, MutableByteSpan out) noexcept {
  kMagic.copy(header.magic, sizeof header.magic);
  kTag.copy(header.tag, sizeof header.tag);
  header.crc32c = crc32c(std::as_bytes(std::span(&header, 1)).first(kFixedCrcAt));
  std::memcpy(out.data(), &header, sizeof header);
}

Result<FixedHeader> decode_fixed_header(ByteSpan file, std::string_view name) {
  if (file.size() < kFixedHeaderBytes) {
    return error(Code::kMalformed,
                 "{} has {} bytes, fewer than the {} of a program file's header: {}", name,
                 file.size(), kFixedHeaderBytes, kRecompile);
  }
  FixedHeader h;
  std::memcpy(&h, file.data(), sizeof h);
  // First, so that damage is not taken for another version or another size.
  const std::uint32_t computed = crc32c(file.first(kFixedCrcAt));
  if (h.crc32c != computed) {
    return error(Code::kCorrupted,
                 "{}: the header's CRC-32C is {:08x}, stored is {:08x}; copy the file again or {}",
                 name, computed, h.crc32c, kRecompile);
  }
  // Version before sizes: of another major version no field but the version is known.
  CORELANE_TRY(check_version(h, name));
  CORELANE_TRY(check_reserved(h, name));
  CORELANE_TRY(check_sizes(file, h, name));
  return h;
}

}  // namespace corelane::program
