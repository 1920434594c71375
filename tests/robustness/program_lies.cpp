#include "program_lies.h"

#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "program/description_check.h"
#include "program/program_format.h"
#include "program/program_header.h"
#include "program/program_segments.h"

namespace corelane::robustness {

namespace format = program;

namespace {

std::vector<SegmentInfo> placed(const std::vector<ProgramDescription>& descriptions,
                                std::vector<SegmentInfo> segments,
                                const std::vector<ByteVector>& contents, std::size_t* file_size) {
  for (std::size_t i = 0; i < segments.size() && i < contents.size(); ++i)
    segments[i].size = contents[i].size();
  const std::size_t header = encode_header(descriptions, segments).size();
  *file_size = place_segments(segments, format::kFixedHeaderBytes + header);
  return segments;
}

std::uint64_t strange_number(Mutator& m) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t choices[] = {
      0,         1,           63,       64,         65,         4096,       kMax,
      kMax - 63, kMax - 4095, kMax / 2, 1ULL << 31, 1ULL << 32, 1ULL << 62, m.below(20000)};
  return choices[m.below(std::size(choices))];
}

IoEntry& some_entry(ProgramDescription& d, Mutator& m) {
  const std::size_t i = m.below(d.inputs.size() + d.outputs.size());
  return i < d.inputs.size() ? d.inputs[i] : d.outputs[i - d.inputs.size()];
}

SegmentInfo& some_segment(Parts& p, Mutator& m) { return p.segments[m.below(p.segments.size())]; }

using Lie = std::pair<const char*, std::function<void(Parts&, Mutator&)>>;

const std::vector<Lie>& segment_lies() {
  static const std::vector<Lie> all = {
      {"segment offset",
       [](Parts& p, Mutator& m) { some_segment(p, m).offset = strange_number(m); }},
      {"segment size", [](Parts& p, Mutator& m) { some_segment(p, m).size = strange_number(m); }},
      {"segment kind",
       [](Parts& p, Mutator& m) {
         some_segment(p, m).kind = static_cast<SegmentKind>(m.below(256));
       }},
      {"segment checksum",
       [](Parts& p, Mutator& m) { some_segment(p, m).crc32c ^= 1U << m.below(32); }},
      {"segment twice", [](Parts& p, Mutator& m) { p.segments.push_back(some_segment(p, m)); }},
      {"segment missing",
       [](Parts& p, Mutator& m) {
         p.segments.erase(p.segments.begin() +
                          static_cast<std::ptrdiff_t>(m.below(p.segments.size())));
       }},
      {"segments exchanged",
       [](Parts& p, Mutator& m) {
         std::swap(some_segment(p, m).offset, some_segment(p, m).offset);
       }},
  };
  return all;
}

/// Only of files with several networks.
const std::vector<Lie>& part_lies() {
  static const std::vector<Lie> all = {
      {"a part's name twice",
       [](Parts& p, Mutator&) { p.others.back().part = p.description.part; }},
      {"a part without a name", [](Parts& p, Mutator&) { p.others.back().part.clear(); }},
      {"the first part without a name", [](Parts& p, Mutator&) { p.description.part.clear(); }},
      {"a part's long name",
       [](Parts& p, Mutator& m) { p.others.back().part.assign(254 + m.below(4), 'x'); }},
      {"a part without outputs", [](Parts& p, Mutator&) { p.others.front().outputs.clear(); }},
      {"a part twice", [](Parts& p, Mutator&) { p.others.push_back(p.others.back()); }},
      {"a part without its network",
       [](Parts& p, Mutator& m) {
         p.others.push_back(p.others.back());
         p.others.back().part = "another" + std::to_string(m.below(9));
       }},
      {"a part's constants",
       [](Parts& p, Mutator&) { p.segments.back().kind = SegmentKind::kConstants; }},
      {"another part's segment",
       [](Parts& p, Mutator& m) {
         some_segment(p, m).part = static_cast<std::uint32_t>(m.below(p.others.size() + 1));
       }},
      {"a part missing", [](Parts& p, Mutator&) { p.others.pop_back(); }},
  };
  return all;
}

const std::vector<Lie>& description_lies() {
  static const std::vector<Lie> all = {
      {"no outputs", [](Parts& p, Mutator&) { p.description.outputs.clear(); }},
      {"name twice",
       [](Parts& p, Mutator& m) {
         auto& outputs = p.description.outputs;
         outputs.push_back(outputs[m.below(outputs.size())]);
       }},
      {"no name", [](Parts& p, Mutator& m) { some_entry(p.description, m).desc.name.clear(); }},
      {"element type",
       [](Parts& p, Mutator& m) {
         some_entry(p.description, m).desc.dtype = static_cast<DType>(m.below(256));
       }},
      {"boundary type",
       [](Parts& p, Mutator& m) {
         some_entry(p.description, m).quant_dtype = static_cast<DType>(m.below(256));
       }},
      {"reported type",
       [](Parts& p, Mutator& m) {
         some_entry(p.description, m).reported_dtype = static_cast<DType>(m.below(256));
       }},
      {"rank",
       [](Parts& p, Mutator& m) {
         some_entry(p.description, m).desc.shape = Shape(std::vector<std::int64_t>(m.below(40), 1));
       }},
      {"dimension",
       [](Parts& p, Mutator& m) {
         Shape& shape = some_entry(p.description, m).desc.shape;
         if (shape.rank() == 0) shape = Shape{1};
         shape[m.below(shape.rank())] = static_cast<std::int64_t>(strange_number(m));
       }},
      {"dimension names",
       [](Parts& p, Mutator& m) {
         some_entry(p.description, m).desc.dim_names.resize(m.below(40));
       }},
      {"layout",
       [](Parts& p, Mutator& m) {
         Layout& layout = some_entry(p.description, m).desc.layout;
         layout = {static_cast<LayoutKind>(m.below(5)),
                   static_cast<std::uint32_t>(strange_number(m)),
                   static_cast<std::uint32_t>(strange_number(m))};
       }},
      {"quantization kind",
       [](Parts& p, Mutator& m) {
         some_entry(p.description, m).quant.kind = static_cast<QuantKind>(m.below(256));
       }},
      {"scales",
       [](Parts& p, Mutator& m) {
         Quant& q = some_entry(p.description, m).quant;
         q.scales.assign(m.below(9),
                         m.below(2) == 0 ? 0.0F : std::numeric_limits<float>::quiet_NaN());
       }},
      {"axis",
       [](Parts& p, Mutator& m) {
         some_entry(p.description, m).quant.axis = static_cast<std::int32_t>(strange_number(m));
       }},
      {"mean",
       [](Parts& p, Mutator& m) {
         some_entry(p.description, m)
             .mean.assign(m.below(300), std::numeric_limits<float>::infinity());
       }},
      {"shape sets",
       [](Parts& p, Mutator& m) {
         p.description.shape_sets.emplace_back(m.below(9),
                                               Shape{static_cast<std::int64_t>(strange_number(m))});
       }},
      {"batch",
       [](Parts& p, Mutator& m) { p.description.batch = static_cast<std::uint32_t>(m.below(2)); }},
      {"cores",
       [](Parts& p, Mutator& m) {
         p.description.cores = static_cast<std::uint32_t>(strange_number(m));
       }},
      {"custom string",
       [](Parts& p, Mutator& m) { p.description.custom_string.assign(1024 + m.below(3), 'x'); }},
      {"operator twice",
       [](Parts& p, Mutator&) {
         p.description.custom_operators.push_back({"Op", "", 1});
         p.description.custom_operators.push_back({"Op", "", 2});
       }},
      {"finding kind",
       [](Parts& p, Mutator& m) {
         p.description.findings.push_back(
             {static_cast<ImportFinding::Kind>(m.below(256)), "", "", ""});
       }},
  };
  return all;
}

}  // namespace

Parts Parts::random(testing::RandomProgram& random) {
  Parts p;
  p.description = random.description();
  const auto add = [&](SegmentKind kind, std::string tag, std::size_t size) {
    p.segments.push_back({kind, std::move(tag), 0, 0, 0});
    p.contents.push_back(random.bytes(size));
  };
  add(SegmentKind::kGraph, "", 1 + random.below(300));
  if (random.chance(70)) add(SegmentKind::kConstants, "", random.below(2000));
  if (random.chance(50)) add(SegmentKind::kPrecompiled, "engine", random.below(100));
  if (random.chance(50)) add(SegmentKind::kForeign, "rknn", random.below(100));
  if (random.chance(50)) add(SegmentKind::kLowered, "engine/1", random.below(100));
  p.place();
  return p;
}

Parts Parts::random_networks(testing::RandomProgram& random) {
  Parts p = Parts::random(random);
  p.description.part = "first" + random.text();
  for (std::uint32_t i = 1 + static_cast<std::uint32_t>(random.below(2)); i > 0; --i) {
    const auto part = static_cast<std::uint32_t>(p.others.size() + 1);
    ProgramDescription& d = p.others.emplace_back(random.description());
    d.part = "part" + std::to_string(i);
    p.segments.push_back({SegmentKind::kGraph, "", 0, 0, 0, part});
    p.contents.push_back(random.bytes(1 + random.below(300)));
    if (random.chance(50)) continue;
    p.segments.push_back({SegmentKind::kLowered, "engine/1", 0, 0, 0, part});
    p.contents.push_back(random.bytes(random.below(100)));
  }
  p.place();
  return p;
}

std::vector<ProgramDescription> Parts::descriptions() const {
  std::vector<ProgramDescription> all{description};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

void Parts::place() {
  std::size_t ignored = 0;
  segments = placed(descriptions(), std::move(segments), contents, &ignored);
  for (std::size_t i = 0; i < segments.size() && i < contents.size(); ++i)
    segments[i].crc32c = crc32c(contents[i]);
}

ByteVector Parts::assemble() const {
  const ByteVector header = encode_header(descriptions(), segments);
  std::size_t size = 0;
  const auto truth = placed(descriptions(), segments, contents, &size);
  ByteVector file(size);
  std::memcpy(file.data() + format::kFixedHeaderBytes, header.data(), header.size());
  for (std::size_t i = 0; i < truth.size() && i < contents.size(); ++i) {
    if (contents[i].empty()) continue;
    std::memcpy(file.data() + truth[i].offset, contents[i].data(), contents[i].size());
  }
  format::FixedHeader fixed;
  if (!description.part.empty()) fixed.flags = format::kHasParts;
  if (has_opaque_types(descriptions())) fixed.flags |= format::kHasOpaqueTypes;
  fixed.file_size = file.size();
  fixed.header_size = static_cast<std::uint32_t>(header.size());
  fixed.header_crc32c = crc32c(header);
  format::encode_fixed_header(fixed, file);
  return file;
}

std::string tell_lie(Parts& parts, Mutator& mutator) {
  const bool of_segments = mutator.below(2) == 0;
  const bool of_parts = !parts.others.empty() && mutator.below(2) == 0;
  const auto& lies = of_parts ? part_lies() : of_segments ? segment_lies() : description_lies();
  const Lie& lie = lies[mutator.below(lies.size())];
  lie.second(parts, mutator);
  // A changed description changes the header's size; the table follows, so that only the lie is
  // wrong. A lie about segments must not be mended.
  if (&lies != &segment_lies()) parts.place();
  return lie.first;
}

}  // namespace corelane::robustness
