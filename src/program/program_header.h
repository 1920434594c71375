/// The FlatBuffers header of a program file: description and segment table. Private to this room.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/program/description.h"
#include "corelane/program/program_file.h"

namespace corelane {

/// The bytes of the header: one description for each part, at least one, and the segments in the
/// order of the parts. Their number depends on the descriptions and on the count and tags of the
/// segments alone, not on offsets, sizes and checksums. `chain`: the first part is a chain of the
/// others. The same values give the same bytes.
ByteVector encode_header(std::span<const ProgramDescription> parts,
                         std::span<const SegmentInfo> segments, bool chain = false);

struct DecodedHeader {
  std::vector<ProgramDescription> parts;  ///< At least one.
  /// In the order of the parts. Segments of kinds that this version does not know stay in the list.
  std::vector<SegmentInfo> segments;
  bool chain = false;  ///< The first part is a chain of the others.
};

/// Verifies and decodes, and applies check_parts(). Offsets and sizes of the segments are not
/// checked here. Memory in proportion to `bytes`. kMalformed with `name`, the file's, in front.
Result<DecodedHeader> decode_header(ByteSpan bytes, std::string_view name);

}  // namespace corelane
