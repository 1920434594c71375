/// Where the segments of a program file lie. Private to this room.
#pragma once

#include <string_view>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/program/program_file.h"

namespace corelane {

/// Gives each segment (size set) its offset, the first one after `begin`; returns the file's size.
std::size_t place_segments(std::vector<SegmentInfo>& segments, std::size_t begin);

/// The rules on kinds and tags, for each of `parts` networks: one graph, not empty; precompiled,
/// foreign, lowered, verdict and trial with a tag each, used once; no text of no bytes, nor of more
/// than kMaxText. At most one constants in all, which is with the first. Kinds that this version
/// does not know are an error unless `allow_unknown`. kInvalidArgument.
/// `chain`: the first network has no segments of its own, the constants apart.
Status check_segment_kinds(const std::vector<SegmentInfo>& segments, bool allow_unknown,
                           std::size_t parts = 1, bool chain = false);

/// The rules on places: in the order of the table, aligned, inside the file, without overlap, with
/// nothing but zeros between (fewer than 64 KiB), the last one ending with the file. kMalformed.
Status check_segment_places(const std::vector<SegmentInfo>& segments, ByteSpan file,
                            std::size_t begin);

}  // namespace corelane
