#include <algorithm>
#include <cstring>

#include "corelane/program/program_file.h"
#include "program/description_check.h"
#include "program/program_format.h"
#include "program/program_header.h"
#include "program/program_segments.h"

namespace corelane {

namespace format = program;

struct ProgramWriter::Impl {
  bool chain = false;
  std::vector<ProgramDescription> parts;
  std::vector<SegmentInfo> segments;
  // By segment; borrowed until finish().
  std::vector<ByteSpan> contents;
};

namespace {

/// Bytes of text and lists, a lower bound of the header's size; asked before FlatBuffers, which
/// has no error for too much.
std::size_t content_bytes(const ProgramDescription& d) {
  std::size_t n = d.name.size() + d.producer.size() + d.compiler_version.size() + d.part.size();
  n += d.origin.producer_name.size() + d.origin.producer_version.size() + d.origin.domain.size();
  n += d.origin.description.size() + d.origin.graph_description.size();
  for (const auto* side : {&d.inputs, &d.outputs, &d.overridable}) {
    for (const IoEntry& io : *side) {
      n += io.desc.name.size() + 8 * io.desc.shape.rank();
      for (const std::string& s : io.desc.dim_names) n += s.size();
      n += 4 * (io.mean.size() + io.std.size());
      // A scale and its zero point take four bytes each.
      n += 8 * (io.quant.scales.size() + io.desc.quant.scales.size());
    }
  }
  for (const auto& set : d.shape_sets)
    for (const Shape& shape : set) n += 12 + 8 * shape.rank();
  for (const auto& [key, value] : d.metadata) n += 8 + key.size() + value.size();
  for (const ImportFinding& f : d.findings) n += 12 + f.node.size() + f.op.size() + f.text.size();
  for (const CustomOperatorDecl& op : d.custom_operators) n += op.type.size() + op.domain.size();
  for (const StateDecl& s : d.states) n += 12 + s.output.size() + s.input.size();
  return n;
}

std::size_t io_count(const ProgramDescription& d) {
  return d.inputs.size() + d.outputs.size() + d.overridable.size();
}

/// The program and its origin; an entry and its two quantizations.
std::size_t table_count(const ProgramDescription& d) {
  std::size_t tables = 2 + 3 * io_count(d) + d.metadata.size() + d.findings.size() +
                       d.custom_operators.size() + d.states.size();
  for (const auto& set : d.shape_sets) tables += 1 + set.size();
  return tables;
}

Status check_limits(const std::vector<ProgramDescription>& parts,
                    const std::vector<SegmentInfo>& segments) {
  if (segments.size() > format::kMaxSegments) {
    return error(Code::kInvalidArgument, "{} segments; at most {} are allowed", segments.size(),
                 format::kMaxSegments);
  }
  std::size_t tables = segments.size();
  std::size_t bytes = 0;
  std::size_t io = 0;
  for (const SegmentInfo& s : segments) bytes += s.tag.size();
  for (const ProgramDescription& d : parts) {
    io += io_count(d);
    tables += table_count(d);
    bytes += content_bytes(d);
  }
  if (tables > format::kMaxTables) {
    return error(Code::kInvalidArgument,
                 "the description has {} tables (shapes, findings, "
                 "metadata, ...); at most {} are allowed",
                 tables, format::kMaxTables);
  }
  if (io > format::kMaxIoOfFile) {
    return error(Code::kInvalidArgument,
                 "{} inputs, outputs and initializers of all parts; at most {} are allowed", io,
                 format::kMaxIoOfFile);
  }
  if (bytes > format::kMaxHeaderBytes) {
    return error(Code::kInvalidArgument,
                 "the description takes more than {} bytes; at most {} are allowed", bytes,
                 format::kMaxHeaderBytes);
  }
  return {};
}

bool has_kind(const std::vector<SegmentInfo>& segments, SegmentKind kind) {
  return std::ranges::any_of(segments, [&](const SegmentInfo& s) { return s.kind == kind; });
}

bool has_lowered_form(const std::vector<SegmentInfo>& segments) {
  return std::ranges::any_of(
      segments, [](const SegmentInfo& s) { return s.kind == SegmentKind::kLowered && s.size > 0; });
}

bool has_partial_inputs(const std::vector<ProgramDescription>& parts) {
  return std::ranges::any_of(parts, [](const ProgramDescription& d) {
    return std::ranges::any_of(d.inputs, &IoEntry::partial_allowed);
  });
}

/// The first version that has all that the file holds.
std::uint16_t minor_of(const std::vector<ProgramDescription>& parts,
                       const std::vector<SegmentInfo>& segments, bool chain) {
  if (has_kind(segments, SegmentKind::kTrial)) return 11;
  if (chain) return 10;
  if (std::ranges::any_of(parts, [](const auto& d) { return !d.states.empty(); })) return 9;
  const auto overridable = [](const auto& d) { return !d.overridable.empty(); };
  if (has_values(parts) || std::ranges::any_of(parts, overridable)) return 8;
  if (has_opaque_types(parts)) return 7;
  if (has_kind(segments, SegmentKind::kVerdict)) return 6;
  if (std::ranges::any_of(parts, [](const auto& d) { return d.batch_range.has_value(); })) return 5;
  if (has_partial_inputs(parts)) return 4;
  if (has_parts(parts)) return 3;
  // Files that need nothing new stay readable for corelane as old as the format allows.
  if (has_kind(segments, SegmentKind::kLowered)) return 2;
  return parts.front().origin == ModelOrigin{} ? 0 : 1;
}

/// What a reader must know to read the file rightly.
std::uint32_t flags_of(const std::vector<ProgramDescription>& parts,
                       const std::vector<SegmentInfo>& segments, bool chain) {
  std::uint32_t flags = 0;
  // Readers before 1.2 must refuse, or they would run the graph that the engine gets wrong.
  if (has_lowered_form(segments)) flags |= format::kHasLoweredForm;
  if (has_parts(parts)) flags |= format::kHasParts;
  if (has_kind(segments, SegmentKind::kVerdict)) flags |= format::kHasVerdict;
  if (has_opaque_types(parts)) flags |= format::kHasOpaqueTypes;
  if (has_values(parts)) flags |= format::kHasValues;
  if (chain) flags |= format::kHasChain;
  return flags;
}

}  // namespace

ProgramWriter::ProgramWriter(ProgramDescription description) : impl_(std::make_unique<Impl>()) {
  impl_->parts.push_back(std::move(description));
}
ProgramWriter::~ProgramWriter() = default;
ProgramWriter::ProgramWriter(ProgramWriter&&) noexcept = default;
ProgramWriter& ProgramWriter::operator=(ProgramWriter&&) noexcept = default;

void ProgramWriter::add_part(ProgramDescription description) {
  impl_->parts.push_back(std::move(description));
}

void ProgramWriter::set_chain() { impl_->chain = true; }

void ProgramWriter::add_segment(SegmentKind kind, std::string tag, ByteSpan bytes) {
  const auto part = static_cast<std::uint32_t>(impl_->parts.size() - 1);
  impl_->segments.push_back({kind, std::move(tag), 0, bytes.size(), 0, part});
  impl_->contents.push_back(bytes);
}

Result<ByteVector> ProgramWriter::finish() const {
  const std::vector<ProgramDescription>& parts = impl_->parts;
  std::vector<SegmentInfo> segments = impl_->segments;
  // The reader applies the same rules: what is written here can be opened.
  CORELANE_TRY(check_parts(parts));
  if (impl_->chain) CORELANE_TRY(check_chain(parts));
  CORELANE_TRY(check_segment_kinds(segments, /*allow_unknown=*/false, parts.size(), impl_->chain));
  CORELANE_TRY(check_limits(parts, segments));

  // The header's size decides the offsets, which it holds but which do not change its size.
  const std::size_t header_size = encode_header(parts, segments, impl_->chain).size();
  if (header_size > format::kMaxHeaderBytes) {
    return error(Code::kInvalidArgument, "the description takes {} bytes; at most {} are allowed",
                 header_size, format::kMaxHeaderBytes);
  }
  const std::size_t file_size = place_segments(segments, format::kFixedHeaderBytes + header_size);
  for (std::size_t i = 0; i < segments.size(); ++i) segments[i].crc32c = crc32c(impl_->contents[i]);
  const ByteVector header = encode_header(parts, segments, impl_->chain);
  if (header.size() != header_size)
    return error(Code::kInternal, "the header took {} bytes, then {}", header_size, header.size());

  ByteVector file(file_size);
  format::FixedHeader fixed;
  fixed.minor = minor_of(parts, segments, impl_->chain);
  fixed.flags = flags_of(parts, segments, impl_->chain);
  fixed.file_size = file_size;
  fixed.header_size = static_cast<std::uint32_t>(header_size);
  fixed.header_crc32c = crc32c(header);
  format::encode_fixed_header(fixed, file);
  std::copy(header.begin(), header.end(), file.begin() + format::kFixedHeaderBytes);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const ByteSpan content = impl_->contents[i];
    // An empty span may have no address, which memcpy must not be given.
    if (!content.empty())
      std::memcpy(file.data() + segments[i].offset, content.data(), content.size());
  }
  return file;
}

}  // namespace corelane
