/// The FlatBuffers header of a program file: description and segment table. Private to this room.
#pragma once

#include <string_view>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/program/description.h"
#include "corelane/program/program_file.h"

namespace corelane {

/// The bytes of the header. Their number depends on the description and on the count and tags of
/// the segments alone, not on offsets, sizes and checksums. The same values give the same bytes.
ByteVector encode_header(const ProgramDescription& description,
                         const std::vector<SegmentInfo>& segments);

struct DecodedHeader {
  ProgramDescription description;
  /// Segments of kinds that this version does not know stay in the list.
  std::vector<SegmentInfo> segments;
};

/// Verifies and decodes, and applies check_description. Offsets and sizes of the segments are not
/// checked here. Memory in proportion to `bytes`. kMalformed with `name`, the file's, in front.
Result<DecodedHeader> decode_header(ByteSpan bytes, std::string_view name);

}  // namespace corelane
