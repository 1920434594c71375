#include <cstring>

#include "program/program_header.h"
#include "program_schema/program_generated.h"

namespace corelane {

namespace {

namespace fb = flatbuffers;

/// A vector of what `make` writes for each item.
template <class Items, class Make>
auto list(fb::FlatBufferBuilder& builder, const Items& items, const Make& make) {
  std::vector<decltype(make(*items.begin()))> offsets;
  for (const auto& item : items) offsets.push_back(make(item));
  return builder.CreateVector(offsets);
}

/// Strings and vectors are written before the table that holds them: FlatBuffers cannot nest.
class Encoder {
 public:
  Encoder() {
    // Every field is stored, so that the size does not depend on the values.
    builder_.ForceDefaults(true);
  }

  ByteVector encode(std::span<const ProgramDescription> parts,
                    std::span<const SegmentInfo> segments, bool chain) {
    std::vector<fb::Offset<schema::Program>> others;
    for (std::size_t i = 1; i < parts.size(); ++i)
      others.push_back(program(parts[i], of_part(segments, i), {}));
    // Absent where there is one network, as in files before format 1.3.
    const auto list = others.empty() ? ProgramList() : builder_.CreateVector(others);
    // Absent where it is none, as in files before format 1.10.
    const auto is_chain = chain ? fb::Optional<bool>(true) : fb::nullopt;
    builder_.Finish(program(parts.front(), of_part(segments, 0), list, is_chain));
    // A copy: the builder's buffer lies at the end of a larger one.
    ByteVector out(builder_.GetSize());
    std::memcpy(out.data(), builder_.GetBufferPointer(), out.size());
    return out;
  }

 private:
  using ProgramList = fb::Offset<fb::Vector<fb::Offset<schema::Program>>>;

  static std::vector<SegmentInfo> of_part(std::span<const SegmentInfo> segments, std::size_t part) {
    std::vector<SegmentInfo> own;
    for (const SegmentInfo& s : segments)
      if (s.part == part) own.push_back(s);
    return own;
  }

  fb::Offset<schema::Program> program(const ProgramDescription& d,
                                      const std::vector<SegmentInfo>& segments, ProgramList others,
                                      fb::Optional<bool> chain = {}) {
    // What a table refers to is written before the table: FlatBuffers builds from the back.
    const auto entry_of = [&](const IoEntry& io) { return entry(io); };
    const auto inputs = list(builder_, d.inputs, entry_of);
    const auto outputs = list(builder_, d.outputs, entry_of);
    // Absent where there are none, as in files before format 1.8.
    using Entries = fb::Offset<fb::Vector<fb::Offset<schema::Io>>>;
    const auto overridable =
        d.overridable.empty() ? Entries() : list(builder_, d.overridable, entry_of);
    const auto sets = list(builder_, d.shape_sets, [&](const std::vector<Shape>& set) {
      const auto shapes = list(builder_, set, [&](const Shape& shape) {
        return schema::CreateDims(builder_, builder_.CreateVector(shape.dims()));
      });
      return schema::CreateShapeSet(builder_, shapes);
    });
    const auto operators = list(builder_, d.custom_operators, [&](const CustomOperatorDecl& op) {
      const auto type = text(op.type);
      const auto domain = text(op.domain);
      return schema::CreateCustomOperator(builder_, type, domain, op.nodes);
    });
    const auto metadata = list(builder_, d.metadata, [&](const auto& property) {
      const auto key = text(property.first);
      const auto value = text(property.second);
      return schema::CreateProperty(builder_, key, value);
    });
    const auto finding_list = list(builder_, d.findings, [&](const ImportFinding& f) {
      const auto node = text(f.node);
      const auto op = text(f.op);
      const auto what = text(f.text);
      return schema::CreateFinding(builder_, static_cast<std::uint8_t>(f.kind), node, op, what);
    });
    const auto segment_list = list(builder_, segments, [&](const SegmentInfo& s) {
      const auto tag = text(s.tag);
      return schema::CreateSegment(builder_, static_cast<std::uint8_t>(s.kind), tag, s.offset,
                                   s.size, s.crc32c);
    });
    // Absent where there are none, as in files before format 1.9.
    using States = fb::Offset<fb::Vector<fb::Offset<schema::State>>>;
    const auto states =
        d.states.empty() ? States() : list(builder_, d.states, [&](const StateDecl& s) {
          const auto output = text(s.output);
          const auto input = text(s.input);
          return schema::CreateState(builder_, output, input);
        });
    const auto name = text(d.name);
    const auto producer = text(d.producer);
    const auto custom = text(d.custom_string);
    const auto compiler = text(d.compiler_version);
    const auto from = origin(d.origin);
    // Absent when there is none, as in files before format 1.5.
    using Size = fb::Optional<std::uint32_t>;
    const auto low = d.batch_range ? Size(d.batch_range->low) : fb::nullopt;
    const auto high = d.batch_range ? Size(d.batch_range->high) : fb::nullopt;
    const auto part = d.part.empty() ? fb::Offset<fb::String>() : text(d.part);
    return schema::CreateProgram(builder_, name, producer, d.opset, inputs, outputs, sets, d.batch,
                                 d.cores, custom, operators, metadata, finding_list, compiler,
                                 d.node_count, d.constant_bytes, d.macs, segment_list, from, part,
                                 others, low, high, overridable, states, chain);
  }

  fb::Offset<fb::String> text(const std::string& s) {
    return builder_.CreateString(s.data(), s.size());
  }

  /// Absent when it says nothing, as in files of format 1.0.
  fb::Offset<schema::Origin> origin(const ModelOrigin& o) {
    if (o == ModelOrigin{}) return {};
    const auto name = text(o.producer_name);
    const auto version = text(o.producer_version);
    const auto domain = text(o.domain);
    const auto description = text(o.description);
    const auto graph = text(o.graph_description);
    const auto number = o.version ? fb::Optional<std::int64_t>(*o.version) : fb::nullopt;
    return schema::CreateOrigin(builder_, name, version, domain, description, graph, number);
  }

  fb::Offset<schema::Quant> quant(const Quant& q) {
    const auto scales = builder_.CreateVector(q.scales);
    const auto zeros = builder_.CreateVector(q.zero_points);
    return schema::CreateQuant(builder_, static_cast<std::uint8_t>(q.kind), q.fl, q.axis, scales,
                               zeros);
  }

  /// Fields in the order of program.fbs, as schema::CreateIo() wants them.
  fb::Offset<schema::Io> entry(const IoEntry& io) {
    const auto name = text(io.desc.name);
    const auto dims = builder_.CreateVector(io.desc.shape.dims());
    const auto dim_names =
        list(builder_, io.desc.dim_names, [&](const std::string& s) { return text(s); });
    const auto own = quant(io.desc.quant);
    const auto boundary = quant(io.quant);
    const auto mean = builder_.CreateVector(io.mean);
    const auto std = builder_.CreateVector(io.std);
    // Absent for tensors of numbers, as in files before format 1.8.
    const ValueType& type = io.desc.value;
    const auto value = type.empty() ? fb::Offset<fb::String>() : text(type.to_string());
    const auto value_dims = type.shape ? builder_.CreateVector(type.shape->dims())
                                       : fb::Offset<fb::Vector<std::int64_t>>();
    const auto value_names =
        type.dim_names.empty()
            ? fb::Offset<fb::Vector<fb::Offset<fb::String>>>()
            : list(builder_, type.dim_names, [&](const std::string& s) { return text(s); });
    // Absent when it is not set, as in files before format 1.4.
    const auto partial = io.partial_allowed ? fb::Optional<bool>(true) : fb::nullopt;
    return schema::CreateIo(
        builder_, name, static_cast<std::uint8_t>(io.desc.dtype), dims, dim_names,
        static_cast<std::uint8_t>(io.desc.layout.kind), io.desc.layout.c2, io.desc.layout.w_stride,
        own, static_cast<std::uint8_t>(io.quant_dtype), boundary,
        static_cast<std::uint8_t>(io.reported_dtype), mean, std,
        static_cast<std::uint8_t>(io.preferred_layout), partial, value, value_dims, value_names);
  }

  fb::FlatBufferBuilder builder_;
};

}  // namespace

ByteVector encode_header(std::span<const ProgramDescription> parts,
                         std::span<const SegmentInfo> segments, bool chain) {
  return Encoder().encode(parts, segments, chain);
}

}  // namespace corelane
