/// The numbers of the program file's format and its fixed header. Private to model; the page is
/// docs/formats/program-file.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "corelane/base/bytes.h"
#include "corelane/program/program_file.h"

namespace corelane::program {

inline constexpr std::string_view kMagic = "RKNN";
inline constexpr std::string_view kTag = "CLP1";
inline constexpr std::uint16_t kMajor = 1;
inline constexpr std::uint16_t kMinor = 2;
inline constexpr std::size_t kFixedHeaderBytes = 64;
/// Offsets inside the fixed header.
inline constexpr std::size_t kMajorAt = 8;
inline constexpr std::size_t kMinorAt = 10;
inline constexpr std::size_t kFlagsAt = 12;
inline constexpr std::size_t kFileSizeAt = 16;
inline constexpr std::size_t kHeaderSizeAt = 24;
inline constexpr std::size_t kHeaderCrcAt = 28;
inline constexpr std::size_t kReservedAt = 32;
inline constexpr std::size_t kFixedCrcAt = 60;
/// Flags of the low half change what the file means: a reader that does not know one must refuse.
inline constexpr std::uint32_t kRequiredFlags = 0x0000FFFF;
/// An engine computes the graph segment wrongly and has a lowered form instead. Readers before 1.2
/// would run the graph.
inline constexpr std::uint32_t kHasLoweredForm = 0x00000001;
inline constexpr std::uint32_t kKnownFlags = kHasLoweredForm;

inline constexpr std::size_t kSegmentAlignment = 64;
inline constexpr std::size_t kConstantsAlignment = 4096;
/// Zero bytes between two segments stay below this.
inline constexpr std::size_t kMaxGap = 65536;

/// Limits on what a reader decodes, so that memory stays in proportion to the file.
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{64} << 20;
inline constexpr std::uint32_t kMaxTables = std::uint32_t{1} << 20;
inline constexpr std::uint32_t kMaxDepth = 16;
inline constexpr std::size_t kMaxSegments = 1024;
inline constexpr std::size_t kMaxRank = 16;
inline constexpr std::size_t kMaxIo = 4096;
inline constexpr std::size_t kMaxCustomString = 1024;

constexpr std::size_t alignment_of(SegmentKind kind) noexcept {
  return kind == SegmentKind::kConstants ? kConstantsAlignment : kSegmentAlignment;
}

struct FixedHeader {
  std::uint16_t major = kMajor;
  std::uint16_t minor = kMinor;
  std::uint32_t flags = 0;
  std::uint64_t file_size = 0;
  std::uint32_t header_size = 0;
  std::uint32_t header_crc32c = 0;

  /// True when a later version may have added things that this reader skips.
  bool newer() const noexcept { return minor > kMinor; }
};

/// Writes 64 bytes, the checksum included. `out` has at least that many.
void encode_fixed_header(const FixedHeader& header, MutableByteSpan out) noexcept;

/// Reads and checks the first 64 bytes against the size of the whole file. `name` is how messages
/// call the file. kMalformed, kCorrupted, kVersionMismatch.
Result<FixedHeader> decode_fixed_header(ByteSpan file, std::string_view name);

}  // namespace corelane::program
