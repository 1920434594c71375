/// Reads what the container of the vendor's compiler lists: its header and its segments. Nothing of
/// it is run, and nothing in it is believed: addresses are turned into places in the file, and each
/// place, count and length is checked against the bytes that are there.
///
/// The form, little-endian. Header of 40 bytes: u32 magic 0x00A1CD7C, u8 major and u8 minor
/// version, u16 compression (0: the addresses are those of the writer's memory, 1: all is in the
/// file), u64 size, u64 base, u64 number of segments, u64 address of their array. A segment, 32
/// bytes: u64 size, u64 offset (of constants.bin: where the dynamic ones begin), u64 address of its
/// name, u64 address of its bytes. An address less the base is a place in the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"

namespace corelane::cli {

/// Whether the bytes begin like such a container.
bool is_vendor_container(ByteSpan bytes) noexcept;

/// One segment, in the order of the container.
struct VendorSegment {
  std::string name;          ///< Any bytes, at most kMostName of them.
  std::uint64_t at = 0;      ///< Its place in the file.
  std::uint64_t size = 0;    ///< Bytes.
  std::uint64_t split = 0;   ///< Of constants.bin: bytes of the static constants.
  std::string_view meaning;  ///< What a segment of this name holds; empty where unknown.
};

struct VendorContainer {
  std::uint8_t major = 0, minor = 0;
  std::uint16_t compression = 0;
  std::uint64_t size = 0;  ///< As the header says; not more than the bytes there are.
  std::vector<VendorSegment> segments;

  static constexpr std::size_t kMostSegments = 1024;
  static constexpr std::size_t kMostName = 255;

  /// kForeignImage without the magic; kVersionMismatch for a version that is not 0.x;
  /// kMalformed (a place, count or length that leaves the file, a name without an end, two segments
  /// of one name, bytes of two segments or of a table that overlap). Needs at most 2 KiB of memory
  /// for each segment, and 1 KiB.
  static Result<VendorContainer> read(ByteSpan bytes);
};

}  // namespace corelane::cli
