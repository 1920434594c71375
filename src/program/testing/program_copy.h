/// A program file written again from what was read of it. For tests.
#pragma once

#include "corelane/program/program_file.h"

namespace corelane::testing {

/// kUnsupported where a segment is of a kind that only a later version can write; else what reading
/// its segments or ProgramWriter::finish() fails with.
inline Result<ByteVector> write_again(const ProgramFile& file) {
  ProgramWriter writer(file.description());
  if (file.is_chain()) writer.set_chain();
  std::uint32_t part = 0;
  for (std::size_t i = 0; i < file.segments().size(); ++i) {
    const SegmentInfo& s = file.segments()[i];
    if (s.kind < SegmentKind::kGraph || s.kind > SegmentKind::kLowered)
      return error(Code::kUnsupported, "a segment of {}", segment_kind_name(s.kind));
    // Each part has a segment, its network; but a chain may have none.
    while (part < s.part) writer.add_part(file.description(++part));
    CORELANE_ASSIGN(const ByteSpan content, file.segment(i));
    writer.add_segment(s.kind, s.tag, content);
  }
  return writer.finish();
}

/// Whether both say the same of the same networks.
inline bool same_descriptions(const ProgramFile& a, const ProgramFile& b) {
  if (a.part_count() != b.part_count()) return false;
  for (std::size_t i = 0; i < a.part_count(); ++i)
    if (!(a.description(i) == b.description(i))) return false;
  return true;
}

}  // namespace corelane::testing
