#include "program/program_format.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace corelane::program {

static_assert(std::endian::native == std::endian::little, "program files are read in place");

namespace {

template <class T>
void put(MutableByteSpan out, std::size_t at, T value) noexcept {
  std::memcpy(out.data() + at, &value, sizeof(T));
}

template <class T>
T get(ByteSpan in, std::size_t at) noexcept {
  T value;
  std::memcpy(&value, in.data() + at, sizeof(T));
  return value;
}

constexpr std::string_view kRecompile =
    "write it again with `corelane compile model.onnx -o model.rknn`";

Status check_version(const FixedHeader& h, std::string_view name) {
  if (h.major != kMajor || h.major == 0) {
    return error(Code::kVersionMismatch,
                 "{} has program format {}.{}; corelane {} reads format {}.x: {}, or use the "
                 "corelane that wrote it",
                 name, h.major, h.minor, CORELANE_VERSION_STRING, kMajor, kRecompile);
  }
  const std::uint32_t unknown = (h.newer() ? h.flags & kRequiredFlags : h.flags) & ~kKnownFlags;
  if (unknown != 0) {
    return error(h.newer() ? Code::kVersionMismatch : Code::kMalformed,
                 "{} (format {}.{}) sets flags 0x{:08x}, of which corelane {} does not know "
                 "0x{:08x}: {}",
                 name, h.major, h.minor, h.flags, CORELANE_VERSION_STRING, unknown, kRecompile);
  }
  return {};
}

Status check_reserved(ByteSpan file, const FixedHeader& h, std::string_view name) {
  if (h.newer()) return {};
  const ByteSpan reserved = file.subspan(kReservedAt, kFixedCrcAt - kReservedAt);
  if (std::any_of(reserved.begin(), reserved.end(), [](std::byte b) { return b != std::byte{}; })) {
    return error(Code::kMalformed, "{}: reserved bytes {} to {} of the header are not zero: {}",
                 name, kReservedAt, kFixedCrcAt - 1, kRecompile);
  }
  return {};
}

Status check_sizes(ByteSpan file, const FixedHeader& h, std::string_view name) {
  if (h.file_size != file.size()) {
    return error(Code::kMalformed,
                 "{} has {} bytes, but its header says {}: it was {}; copy it "
                 "again or {}",
                 name, file.size(), h.file_size,
                 file.size() < h.file_size ? "truncated" : "appended to", kRecompile);
  }
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

void encode_fixed_header(const FixedHeader& header, MutableByteSpan out) noexcept {
  std::fill_n(out.begin(), kFixedHeaderBytes, std::byte{});
  std::memcpy(out.data(), kMagic.data(), kMagic.size());
  std::memcpy(out.data() + kMagic.size(), kTag.data(), kTag.size());
  put(out, kMajorAt, header.major);
  put(out, kMinorAt, header.minor);
  put(out, kFlagsAt, header.flags);
  put(out, kFileSizeAt, header.file_size);
  put(out, kHeaderSizeAt, header.header_size);
  put(out, kHeaderCrcAt, header.header_crc32c);
  put(out, kFixedCrcAt, crc32c(ByteSpan(out).first(kFixedCrcAt)));
}

Result<FixedHeader> decode_fixed_header(ByteSpan file, std::string_view name) {
  if (file.size() < kFixedHeaderBytes) {
    return error(Code::kMalformed,
                 "{} has {} bytes, fewer than the {} of a program file's header: {}", name,
                 file.size(), kFixedHeaderBytes, kRecompile);
  }
  FixedHeader h;
  h.major = get<std::uint16_t>(file, kMajorAt);
  h.minor = get<std::uint16_t>(file, kMinorAt);
  h.flags = get<std::uint32_t>(file, kFlagsAt);
  h.file_size = get<std::uint64_t>(file, kFileSizeAt);
  h.header_size = get<std::uint32_t>(file, kHeaderSizeAt);
  h.header_crc32c = get<std::uint32_t>(file, kHeaderCrcAt);
  // The place of this checksum is the same in every version, so that a flipped bit in the version
  // differs from another version.
  const auto stored = get<std::uint32_t>(file, kFixedCrcAt);
  const std::uint32_t computed = crc32c(file.first(kFixedCrcAt));
  if (stored != computed) {
    return error(Code::kCorrupted,
                 "{}: the header's CRC-32C is {:08x}, stored is {:08x}; copy the file again or {}",
                 name, computed, stored, kRecompile);
  }
  CORELANE_TRY(check_version(h, name));
  CORELANE_TRY(check_reserved(file, h, name));
  CORELANE_TRY(check_sizes(file, h, name));
  return h;
}

}  // namespace corelane::program
