#include <cstring>

#include "corelane/tensor/value_type.h"
#include "program/description_check.h"
#include "program/program_format.h"
#include "program/program_header.h"
#include "program_schema/program_generated.h"

namespace corelane {

namespace {

namespace fb = flatbuffers;
namespace format = program;

/// Copies a verified header out. The verifier allows that many offsets point to one object, so a
/// small header could unfold to any size; a correct one shares nothing. Everything that is copied
/// is therefore charged against the header's own size, and what exceeds it is malformed.
class Decoder {
 public:
  explicit Decoder(std::size_t budget) : budget_(budget) {}

  Status decode(const schema::Program& p, DecodedHeader& out) {
    CORELANE_TRY(part(p, out));
    out.chain = p.chain().value_or(false);
    if (p.parts() == nullptr) return {};
    // Said before any of them is decoded.
    if (p.parts()->size() >= format::kMaxParts) {
      return error(Code::kMalformed, "{} parts; at most {} are allowed", p.parts()->size() + 1,
                   format::kMaxParts);
    }
    for (const schema::Program* other : *p.parts()) {
      if (!charge(8)) return overrun();
      if (other->parts() != nullptr && other->parts()->size() != 0)
        return error(Code::kMalformed, "part {} has parts itself", out.parts.size());
      if (other->chain().value_or(false))
        return error(Code::kMalformed, "part {} is a chain itself", out.parts.size());
      CORELANE_TRY(part(*other, out));
    }
    return {};
  }

 private:
  Status part(const schema::Program& p, DecodedHeader& out) {
    ProgramDescription& d = out.parts.emplace_back();
    // In the order of program.fbs. What is absent keeps the default of the description.
    d.name = text(p.name());
    d.producer = text(p.producer());
    d.opset = p.opset();
    CORELANE_TRY(entries(p.inputs(), "input", d.inputs));
    CORELANE_TRY(entries(p.outputs(), "output", d.outputs));
    CORELANE_TRY(entries(p.overridable(), "initializer", d.overridable));
    CORELANE_TRY(shape_sets(p, d));
    d.batch = p.batch();
    d.cores = p.cores();
    d.custom_string = text(p.custom_string());
    each(p.custom_operators(), [&](const schema::CustomOperator& op) {
      d.custom_operators.push_back({text(op.type()), text(op.domain()), op.nodes()});
    });
    CORELANE_TRY(metadata(p, d));
    each(p.findings(), [&](const schema::Finding& f) {
      d.findings.push_back({static_cast<ImportFinding::Kind>(f.kind()), text(f.node()),
                            text(f.op()), text(f.text())});
    });
    d.compiler_version = text(p.compiler_version());
    d.node_count = p.node_count();
    d.constant_bytes = p.constant_bytes();
    d.macs = p.macs();
    if (p.origin() != nullptr) d.origin = origin(*p.origin());
    d.part = text(p.part());
    // Half a range is a wrong one, which the check of the description names.
    if (p.batch_low().has_value() || p.batch_high().has_value())
      d.batch_range = BatchRange{p.batch_low().value_or(0), p.batch_high().value_or(0)};
    each(p.states(), [&](const schema::State& s) {
      d.states.push_back({text(s.output()), text(s.input())});
    });
    CORELANE_TRY(segments(p, static_cast<std::uint32_t>(out.parts.size() - 1), out.segments));
    return overrun();
  }

  bool charge(std::size_t bytes) {
    if (overrun_ || bytes > budget_) {
      overrun_ = true;
      return false;
    }
    budget_ -= bytes;
    return true;
  }

  Status overrun() const {
    if (!overrun_) return {};
    return error(Code::kMalformed,
                 "objects of the description are shared, which unfolds to more than its size");
  }

  std::string text(const fb::String* s) {
    // Length field, terminator and padding go along.
    if (s == nullptr || !charge(std::size_t{s->size()} + 8)) return {};
    return {s->c_str(), s->size()};
  }

  /// By memcpy: the verifier does not promise the alignment of 8-byte elements.
  template <class T>
  std::vector<T> numbers(const fb::Vector<T>* v) {
    if (v == nullptr || !charge(std::size_t{v->size()} * sizeof(T) + 4)) return {};
    std::vector<T> out(v->size());
    if (!out.empty()) std::memcpy(out.data(), v->Data(), out.size() * sizeof(T));
    return out;
  }

  template <class T, class F>
  void each(const fb::Vector<fb::Offset<T>>* list, F&& f) {
    if (list == nullptr) return;
    for (const T* item : *list) {
      // A table costs the header an offset and the table's own first word at least.
      if (!charge(8)) return;
      f(*item);
    }
  }

  ModelOrigin origin(const schema::Origin& o) {
    ModelOrigin out{text(o.producer_name()), text(o.producer_version()),  text(o.domain()),
                    text(o.description()),   text(o.graph_description()), {}};
    if (o.version().has_value()) out.version = *o.version();
    return out;
  }

  Quant quant(const schema::Quant* q) {
    Quant out;
    if (q == nullptr) return out;
    // Enumerators are taken as they stand; check_description() refuses those that are none.
    out.kind = static_cast<QuantKind>(q->kind());
    out.fl = q->fl();
    out.axis = q->axis();
    out.scales = numbers(q->scales());
    out.zero_points = numbers(q->zero_points());
    return out;
  }

  Status value_type(const schema::Io& io, ValueType& out) {
    if (io.value() == nullptr) return {};
    CORELANE_ASSIGN(out, parse_value_type(text(io.value())));
    const std::size_t rank = io.value_dims() == nullptr ? 0 : io.value_dims()->size();
    const std::size_t names = io.value_dim_names() == nullptr ? 0 : io.value_dim_names()->size();
    if (rank > format::kMaxRank || names > format::kMaxRank)
      return error(Code::kMalformed,
                   "a value has {} dimensions and {} dimension names; at most {} are allowed", rank,
                   names, format::kMaxRank);
    if (io.value_dims() != nullptr) out.shape = Shape(numbers(io.value_dims()));
    for (std::size_t i = 0; i < names; ++i)
      out.dim_names.push_back(text(io.value_dim_names()->Get(static_cast<fb::uoffset_t>(i))));
    return {};
  }

  Status entry(const schema::Io& io, std::string_view side, IoEntry& out) {
    out.desc.name = text(io.name());
    // Both lists are bounded before anything of them is copied.
    const std::size_t rank = io.dims() == nullptr ? 0 : io.dims()->size();
    const std::size_t names = io.dim_names() == nullptr ? 0 : io.dim_names()->size();
    if (rank > format::kMaxRank || names > format::kMaxRank) {
      return error(Code::kMalformed,
                   "{} '{}' has {} dimensions and {} dimension names; at most {} are allowed", side,
                   out.desc.name, rank, names, format::kMaxRank);
    }
    out.desc.dtype = static_cast<DType>(io.dtype());
    out.desc.shape = Shape(numbers(io.dims()));
    for (std::size_t i = 0; i < names; ++i)
      out.desc.dim_names.push_back(text(io.dim_names()->Get(static_cast<fb::uoffset_t>(i))));
    out.desc.layout = {static_cast<LayoutKind>(io.layout()), io.c2(), io.w_stride()};
    out.desc.quant = quant(io.quant());
    out.quant_dtype = static_cast<DType>(io.boundary_dtype());
    out.quant = quant(io.boundary_quant());
    out.reported_dtype = static_cast<DType>(io.reported_dtype());
    out.mean = numbers(io.mean());
    out.std = numbers(io.std());
    out.preferred_layout = static_cast<LayoutKind>(io.preferred_layout());
    out.partial_allowed = io.partial().value_or(false);
    CORELANE_TRY(value_type(io, out.desc.value));
    return overrun();
  }

  Status entries(const fb::Vector<fb::Offset<schema::Io>>* list, std::string_view side,
                 std::vector<IoEntry>& out) {
    if (list == nullptr) return {};
    if (list->size() > format::kMaxIo) {
      return error(Code::kMalformed, "{} {}s; at most {} are allowed", list->size(), side,
                   format::kMaxIo);
    }
    io_ += list->size();
    if (io_ > format::kMaxIoOfFile) {
      return error(Code::kMalformed, "more than {} inputs, outputs and initializers of all parts",
                   format::kMaxIoOfFile);
    }
    for (const schema::Io* io : *list) {
      if (!charge(8)) return overrun();
      CORELANE_TRY(entry(*io, side, out.emplace_back()));
    }
    return {};
  }

  Status shape_sets(const schema::Program& p, ProgramDescription& d) {
    Status status;
    each(p.shape_sets(), [&](const schema::ShapeSet& set) {
      std::vector<Shape>& shapes = d.shape_sets.emplace_back();
      each(set.shapes(), [&](const schema::Dims& dims) {
        const std::size_t rank = dims.dims() == nullptr ? 0 : dims.dims()->size();
        if (rank > format::kMaxRank) {
          status =
              error(Code::kMalformed, "shape set {} has a shape of rank {}; at most {} is allowed",
                    d.shape_sets.size() - 1, rank, format::kMaxRank);
          return;
        }
        shapes.push_back(Shape(numbers(dims.dims())));
      });
    });
    return status;
  }

  Status metadata(const schema::Program& p, ProgramDescription& d) {
    Status status;
    each(p.metadata(), [&](const schema::Property& property) {
      std::string key = text(property.key());
      // The writer has a map, so a key twice is not a file of its.
      const auto [at, is_new] = d.metadata.emplace(std::move(key), text(property.value()));
      if (!is_new) status = error(Code::kMalformed, "metadata key '{}' is given twice", at->first);
    });
    return status;
  }

  /// Appends those of one part; the limit is for all of them.
  Status segments(const schema::Program& p, std::uint32_t part, std::vector<SegmentInfo>& out) {
    if (p.segments() == nullptr) return {};
    const std::size_t count = out.size() + p.segments()->size();
    if (count > format::kMaxSegments) {
      return error(Code::kMalformed, "{} segments; at most {} are allowed", count,
                   format::kMaxSegments);
    }
    each(p.segments(), [&](const schema::Segment& s) {
      out.push_back({static_cast<SegmentKind>(s.kind()), text(s.tag()), s.offset(), s.size(),
                     s.crc32c(), part});
    });
    return {};
  }

  std::size_t budget_;
  std::size_t io_ = 0;
  bool overrun_ = false;
};

Status verify_and_decode(ByteSpan bytes, DecodedHeader& out) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  fb::Verifier::Options options;
  // The verifier's own work is bounded too: it visits every table once per reference.
  options.max_depth = format::kMaxDepth;
  options.max_tables = format::kMaxTables;
  fb::Verifier verifier(data, bytes.size(), options);
  if (!schema::VerifyProgramBuffer(verifier))
    return error(Code::kMalformed, "the FlatBuffer of {} bytes does not verify", bytes.size());
  // Only after the verifier: the decoder follows offsets without asking.
  CORELANE_TRY(Decoder(bytes.size()).decode(*schema::GetProgram(data), out));
  CORELANE_TRY(check_parts(out.parts));
  return out.chain ? check_chain(out.parts) : Status();
}

}  // namespace

Result<DecodedHeader> decode_header(ByteSpan bytes, std::string_view name) {
  // FlatBuffers reads scalars in place and wants them aligned as in the file.
  constexpr std::size_t kAlignment = 16;
  std::vector<std::max_align_t> aligned;
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment != 0) {
    aligned.resize((bytes.size() + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
    std::memcpy(aligned.data(), bytes.data(), bytes.size());
    bytes = std::as_bytes(std::span(aligned)).first(bytes.size());
  }
  DecodedHeader out;
  // Whatever is wrong with a description inside of a file, the file is what is malformed.
  if (Status s = verify_and_decode(bytes, out); !s.ok()) {
    return error(s.wrap(Code::kMalformed, fmt::format("{}: its description is not valid: {}", name,
                                                      format::kRecompile)));
  }
  return out;
}

}  // namespace corelane
