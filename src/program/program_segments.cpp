#include "program/program_segments.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "program/program_format.h"

namespace corelane {

namespace {

namespace format = program;

bool is_known(SegmentKind kind) {
  return kind >= SegmentKind::kGraph && kind <= SegmentKind::kTrial;
}

std::size_t align_up(std::size_t n, std::size_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}

}  // namespace

/// Gaps are up to the alignment only; the writer leaves them zero.
std::size_t place_segments(std::vector<SegmentInfo>& segments, std::size_t begin) {
  std::size_t end = begin;
  for (SegmentInfo& s : segments) {
    s.offset = align_up(end, format::alignment_of(s.kind));
    end = s.offset + s.size;
  }
  return end;
}

Status check_segment_kinds(const std::vector<SegmentInfo>& segments, bool allow_unknown,
                           std::size_t parts, bool chain) {
  std::set<std::tuple<std::uint32_t, SegmentKind, std::string_view>> seen;
  std::vector<bool> has_graph(parts);
  if (chain) has_graph.front() = true;  // Its parts have them.
  for (const SegmentInfo& s : segments) {
    const std::string kind = segment_kind_name(s.kind);
    if (!is_known(s.kind)) {
      // A later minor version may have kinds that a reader can do without.
      if (allow_unknown) continue;
      return error(Code::kInvalidArgument,
                   "a segment is of {}; graph (1), constants (2), precompiled (3), foreign (4), "
                   "lowered (5), verdict (6) and trial (7) are allowed",
                   kind);
    }
    // What every engine reads has no tag: there can be one of it only.
    const bool single = s.kind == SegmentKind::kGraph || s.kind == SegmentKind::kConstants;
    if (!single && s.tag.empty()) {
      return error(Code::kInvalidArgument,
                   "a {} segment has no tag; it needs one that says what it is for", kind);
    }
    if (s.kind == SegmentKind::kConstants && s.part != 0) {
      return error(Code::kInvalidArgument,
                   "part {} has a constants segment; the first part has it, for all of them",
                   s.part);
    }
    if (!seen.emplace(s.part, s.kind, single ? std::string_view{} : s.tag).second) {
      return error(Code::kInvalidArgument, "two {} segments{}; one is allowed", kind,
                   single ? "" : fmt::format(" are tagged '{}'", s.tag));
    }
    // A reader keeps it as text; an engine without one has none, not an empty one.
    const bool is_text = s.kind == SegmentKind::kVerdict || s.kind == SegmentKind::kTrial;
    if (is_text && (s.size == 0 || s.size > format::kMaxText)) {
      return error(Code::kInvalidArgument, "the {} '{}' has {} bytes; 1 to {} are allowed", kind,
                   s.tag, s.size, format::kMaxText);
    }
    if (chain && s.part == 0 && s.kind != SegmentKind::kConstants)
      return error(Code::kInvalidArgument,
                   "a {} segment of the network that is a chain; its parts have the segments",
                   kind);
    // An empty graph would open, and fail only where it is compiled.
    if (s.kind == SegmentKind::kGraph && s.size > 0) has_graph.at(s.part) = true;
  }
  if (const auto none = std::ranges::find(has_graph, false); none != has_graph.end()) {
    return error(Code::kInvalidArgument,
                 "there is no graph{}, or an empty one; a program needs its network",
                 parts == 1 ? "" : fmt::format(" in part {}", none - has_graph.begin()));
  }
  return {};
}

Status check_segment_places(const std::vector<SegmentInfo>& segments, ByteSpan file,
                            std::size_t begin) {
  // Where the segment before ends; before the first one, the description.
  std::uint64_t end = begin;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const SegmentInfo& s = segments[i];
    const std::string name = fmt::format("segment {} ({})", i, segment_kind_name(s.kind));
    if (auto slice = checked_slice(file, s.offset, s.size, name); !slice) return slice.error();
    if (s.offset % format::alignment_of(s.kind) != 0) {
      return error(Code::kMalformed, "{} begins at {}, not at a multiple of {}", name, s.offset,
                   format::alignment_of(s.kind));
    }
    // In the order of the table, so that one comparison shows every overlap.
    if (s.offset < end) {
      return error(Code::kMalformed, "{} begins at {}, inside what ends at {}", name, s.offset,
                   end);
    }
    // The bytes between segments have no checksum: few of them, and all zero.
    if (s.offset - end >= format::kMaxGap) {
      return error(Code::kMalformed, "{} bytes lie unused before {}; fewer than {} are allowed",
                   s.offset - end, name, format::kMaxGap);
    }
    const ByteSpan gap = file.subspan(end, s.offset - end);
    if (std::any_of(gap.begin(), gap.end(), [](std::byte b) { return b != std::byte{}; }))
      return error(Code::kMalformed, "the bytes between {} and {} are not zero", end, s.offset);
    end = s.offset + s.size;
  }
  // Bytes after the last segment would have no checksum either.
  if (end != file.size())
    return error(Code::kMalformed, "the last segment ends at {}, the file at {}", end, file.size());
  return {};
}

}  // namespace corelane
