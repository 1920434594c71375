/// The numbers of the program file's format and its fixed header. Private to this room; the page is
/// docs/formats/program-file.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "corelane/base/bytes.h"
#include "corelane/program/program_file.h"

namespace corelane::program {

inline constexpr std::string_view kMagic = "RKNN";
inline constexpr std::string_view kTag = "CLP1";
inline constexpr std::uint16_t kMajor = 1;
inline constexpr std::uint16_t kMinor = 11;
/// Flags of the low half change what the file means: a reader that does not know one must refuse.
inline constexpr std::uint32_t kRequiredFlags = 0x0000FFFF;
/// An engine computes the graph segment wrongly and has a lowered form instead. Readers before 1.2
/// would run the graph.
inline constexpr std::uint32_t kHasLoweredForm = 0x00000001;
/// The networks have names, and there may be several. Readers before 1.3 would run the first one,
/// whichever was meant.
inline constexpr std::uint32_t kHasParts = 0x00000002;
/// An engine computes the network wrongly in any form. Readers before 1.6 would run it there.
inline constexpr std::uint32_t kHasVerdict = 0x00000004;
/// An input or output has an element type above 16. Readers before 1.7 do not know its size.
inline constexpr std::uint32_t kHasOpaqueTypes = 0x00000008;
/// An input or output holds the flat form of a value. Readers before 1.8 would take it for bytes.
inline constexpr std::uint32_t kHasValues = 0x00000010;
/// The first network is a chain of the others, and has no graph of its own. Readers before 1.10
/// would miss it.
inline constexpr std::uint32_t kHasChain = 0x00000020;
inline constexpr std::uint32_t kKnownFlags =
    kHasLoweredForm | kHasParts | kHasVerdict | kHasOpaqueTypes | kHasValues | kHasChain;

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
/// Inputs, outputs and overridable initializers of all parts. Many may be one object of the file,
/// and each takes some 400 bytes in memory.
inline constexpr std::size_t kMaxIoOfFile = std::size_t{1} << 18;
inline constexpr std::size_t kMaxCustomString = 1024;
inline constexpr std::size_t kMaxParts = 256;
inline constexpr std::size_t kMaxPartName = 255;
inline constexpr std::size_t kMaxText = 4096;

constexpr std::size_t alignment_of(SegmentKind kind) noexcept {
  return kind == SegmentKind::kConstants ? kConstantsAlignment : kSegmentAlignment;
}

/// The next step in messages about a file that is damaged or of another version.
inline constexpr std::string_view kRecompile =
    "write it again with `corelane compile model.onnx -o model.rknn`";

/// The first 64 bytes of a file as they lie in it: little-endian, without padding.
struct FixedHeader {
  char magic[4] = {};
  char tag[4] = {};
  std::uint16_t major = kMajor;
  std::uint16_t minor = kMinor;
  std::uint32_t flags = 0;
  std::uint64_t file_size = 0;
  std::uint32_t header_size = 0;
  std::uint32_t header_crc32c = 0;
  std::byte reserved[28] = {};  ///< Zero as long as `minor` is not a later one.
  /// The checksum of the bytes before it, in the same place in every version, so that a flipped bit
  /// in the version differs from another version.
  std::uint32_t crc32c = 0;

  /// True when a later version may have added things that this reader skips.
  bool newer() const noexcept { return minor > kMinor; }
};
inline constexpr std::size_t kFixedHeaderBytes = sizeof(FixedHeader);
/// How many of them the checksum covers.
inline constexpr std::size_t kFixedCrcAt = offsetof(FixedHeader, crc32c);
static_assert(kFixedHeaderBytes == 64 && kFixedCrcAt == 60);

/// Writes 64 bytes, magic, tag and checksum included. `out` has at least that many.
void encode_fixed_header(FixedHeader header, MutableByteSpan out) noexcept;

/// Reads and checks the first 64 bytes against the size of the whole file. `name` is how messages
/// call the file. kMalformed, kCorrupted, kVersionMismatch.
Result<FixedHeader> decode_fixed_header(ByteSpan file, std::string_view name);

}  // namespace corelane::program
