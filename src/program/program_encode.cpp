#include <cstring>

#include "program/program_header.h"
#include "program_schema/program_generated.h"

namespace corelane {

namespace {

namespace fb = flatbuffers;

template <class T>
using Offsets = std::vector<fb::Offset<T>>;

class Encoder {
 public:
  Encoder() {
    // Every field is stored, so that the size does not depend on the values.
    builder_.ForceDefaults(true);
  }

  ByteVector encode(const ProgramDescription& d, const std::vector<SegmentInfo>& segments) {
    const auto inputs = entries(d.inputs);
    const auto outputs = entries(d.outputs);
    const auto sets = shape_sets(d);
    const auto operators = custom_operators(d);
    const auto metadata = properties(d);
    const auto finding_list = findings(d);
    const auto segment_list = segment_table(segments);
    const auto name = text(d.name);
    const auto producer = text(d.producer);
    const auto custom = text(d.custom_string);
    const auto compiler = text(d.compiler_version);
    const auto from = origin(d.origin);
    builder_.Finish(schema::CreateProgram(builder_, name, producer, d.opset, inputs, outputs, sets,
                                          d.batch, d.cores, custom, operators, metadata,
                                          finding_list, compiler, d.node_count, d.constant_bytes,
                                          d.macs, segment_list, from));
    ByteVector out(builder_.GetSize());
    std::memcpy(out.data(), builder_.GetBufferPointer(), out.size());
    return out;
  }

 private:
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

  fb::Offset<schema::Io> entry(const IoEntry& io) {
    const auto name = text(io.desc.name);
    const auto dims = builder_.CreateVector(io.desc.shape.dims());
    std::vector<fb::Offset<fb::String>> symbols;
    for (const std::string& s : io.desc.dim_names) symbols.push_back(text(s));
    const auto dim_names = builder_.CreateVector(symbols);
    const auto own = quant(io.desc.quant);
    const auto boundary = quant(io.quant);
    const auto mean = builder_.CreateVector(io.mean);
    const auto std = builder_.CreateVector(io.std);
    return schema::CreateIo(builder_, name, static_cast<std::uint8_t>(io.desc.dtype), dims,
                            dim_names, static_cast<std::uint8_t>(io.desc.layout.kind),
                            io.desc.layout.c2, io.desc.layout.w_stride, own,
                            static_cast<std::uint8_t>(io.quant_dtype), boundary,
                            static_cast<std::uint8_t>(io.reported_dtype), mean, std,
                            static_cast<std::uint8_t>(io.preferred_layout));
  }

  fb::Offset<fb::Vector<fb::Offset<schema::Io>>> entries(const std::vector<IoEntry>& list) {
    Offsets<schema::Io> out;
    for (const IoEntry& io : list) out.push_back(entry(io));
    return builder_.CreateVector(out);
  }

  fb::Offset<fb::Vector<fb::Offset<schema::ShapeSet>>> shape_sets(const ProgramDescription& d) {
    Offsets<schema::ShapeSet> sets;
    for (const std::vector<Shape>& set : d.shape_sets) {
      Offsets<schema::Dims> shapes;
      for (const Shape& shape : set)
        shapes.push_back(schema::CreateDims(builder_, builder_.CreateVector(shape.dims())));
      sets.push_back(schema::CreateShapeSet(builder_, builder_.CreateVector(shapes)));
    }
    return builder_.CreateVector(sets);
  }

  fb::Offset<fb::Vector<fb::Offset<schema::CustomOperator>>> custom_operators(
      const ProgramDescription& d) {
    Offsets<schema::CustomOperator> out;
    for (const CustomOperatorDecl& op : d.custom_operators) {
      const auto type = text(op.type);
      const auto domain = text(op.domain);
      out.push_back(schema::CreateCustomOperator(builder_, type, domain, op.nodes));
    }
    return builder_.CreateVector(out);
  }

  fb::Offset<fb::Vector<fb::Offset<schema::Property>>> properties(const ProgramDescription& d) {
    Offsets<schema::Property> out;
    for (const auto& [key, value] : d.metadata) {
      const auto k = text(key);
      const auto v = text(value);
      out.push_back(schema::CreateProperty(builder_, k, v));
    }
    return builder_.CreateVector(out);
  }

  fb::Offset<fb::Vector<fb::Offset<schema::Finding>>> findings(const ProgramDescription& d) {
    Offsets<schema::Finding> out;
    for (const ImportFinding& f : d.findings) {
      const auto node = text(f.node);
      const auto op = text(f.op);
      const auto what = text(f.text);
      out.push_back(
          schema::CreateFinding(builder_, static_cast<std::uint8_t>(f.kind), node, op, what));
    }
    return builder_.CreateVector(out);
  }

  fb::Offset<fb::Vector<fb::Offset<schema::Segment>>> segment_table(
      const std::vector<SegmentInfo>& segments) {
    Offsets<schema::Segment> out;
    for (const SegmentInfo& s : segments) {
      const auto tag = text(s.tag);
      out.push_back(schema::CreateSegment(builder_, static_cast<std::uint32_t>(s.kind), tag,
                                          s.offset, s.size, s.crc32c));
    }
    return builder_.CreateVector(out);
  }

  fb::FlatBufferBuilder builder_;
};

}  // namespace

ByteVector encode_header(const ProgramDescription& description,
                         const std::vector<SegmentInfo>& segments) {
  return Encoder().encode(description, segments);
}

}  // namespace corelane
