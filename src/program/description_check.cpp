#include "program/description_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "corelane/tensor/value_type.h"
#include "program/program_format.h"

namespace corelane {

namespace {

namespace format = program;

/// More than any device has.
constexpr std::uint32_t kMaxCores = 64;

/// "input 'x'".
struct Where {
  std::string_view side;
  const std::string& name;
  std::string text() const { return fmt::format("{} '{}'", side, name); }
};

Status check_shape(const Where& where, const Shape& shape) {
  if (shape.rank() > format::kMaxRank) {
    return error(Code::kInvalidArgument, "{} has rank {}; at most {} is allowed", where.text(),
                 shape.rank(), format::kMaxRank);
  }
  for (const std::int64_t dim : shape.dims()) {
    // -1 is an open dimension; nothing else below zero has a meaning.
    if (dim < Shape::kOpen) {
      return error(Code::kInvalidArgument,
                   "{} has a dimension of {}; sizes from 0, or -1 for open, are allowed",
                   where.text(), dim);
    }
  }
  return {};
}

Status check_layout(const Where& where, const TensorDesc& desc) {
  const Layout& layout = desc.layout;
  // The reader casts the file's bytes: an enumerator may be none of those that are defined.
  const bool plain = layout.kind == LayoutKind::kPlain;
  if (layout.kind > LayoutKind::kNC1HWC2) {
    return error(Code::kInvalidArgument, "{} has layout {}; plain, nhwc or nc1hwc2 is allowed",
                 where.text(), static_cast<int>(layout.kind));
  }
  // NHWC, NC1HWC2 and a row stride speak of N, C, H and W.
  if ((!plain || layout.w_stride != 0) && desc.shape.rank() != 4) {
    return error(Code::kInvalidArgument,
                 "{} of shape {} has layout {} with row stride {}; that needs four dimensions",
                 where.text(), desc.shape.to_string(), layout_name(layout.kind), layout.w_stride);
  }
  // c2 divides: 0 would end in a division by zero, and another layout has no use for it.
  if ((layout.kind == LayoutKind::kNC1HWC2) != (layout.c2 != 0)) {
    return error(Code::kInvalidArgument,
                 "{} has layout {} with c2 {}; c2 is at least 1 for nc1hwc2 and 0 for the others",
                 where.text(), layout_name(layout.kind), layout.c2);
  }
  return {};
}

/// A static shape whose bytes overflow would be believed by everything above.
Status check_size(const Where& where, const TensorDesc& desc) {
  if (!desc.shape.is_static() || desc.dtype == DType::kString) return {};
  if (auto bytes = desc.bytes(); !bytes) return bytes.error().wrap(where.text());
  return {};
}

Status check_normalisation(const Where& where, const IoEntry& io, const std::vector<float>& values,
                           std::string_view what) {
  if (values.empty()) return {};
  if (where.side != "input" || io.desc.shape.rank() != 4) {
    return error(Code::kInvalidArgument, "{} of shape {} has a {}; only inputs of rank 4 may",
                 where.text(), io.desc.shape.to_string(), what);
  }
  const std::int64_t channels = io.desc.shape[1];
  // With an open channel dimension the door compares when the shape is known.
  if (values.size() != 1 && channels >= 0 && values.size() != static_cast<std::size_t>(channels)) {
    return error(Code::kInvalidArgument,
                 "{} has {} values for its {}; one, or one for each of its {} channels, is allowed",
                 where.text(), values.size(), what, channels);
  }
  for (const float v : values) {
    if (!std::isfinite(v) || (what == "std" && v == 0)) {
      return error(Code::kInvalidArgument, "{} has {} in its {}; finite values{} are allowed",
                   where.text(), v, what, what == "std" ? " other than 0" : "");
    }
  }
  return {};
}

/// The values of the types that a boundary may have; nullopt for all others.
std::optional<std::pair<std::int32_t, std::int32_t>> range_of(DType t) {
  switch (t) {
    case DType::kI8:
      return std::pair{-128, 127};
    case DType::kU8:
      return std::pair{0, 255};
    case DType::kI16:
      return std::pair{-32768, 32767};
    case DType::kU16:
      return std::pair{0, 65535};
    default:
      return std::nullopt;
  }
}

/// The integer form at the boundary: a type and a quantization, or neither.
Status check_boundary(const Where& where, const IoEntry& io) {
  if (io.quant_dtype == DType::kUndefined) {
    if (io.quant.kind == QuantKind::kNone) return {};
    return error(Code::kInvalidArgument,
                 "{} has {} quantization at its boundary but no integer type for it", where.text(),
                 io.quant.to_string());
  }
  const auto range = range_of(io.quant_dtype);
  if (!range || io.quant.kind == QuantKind::kNone) {
    return error(Code::kInvalidArgument,
                 "{} is offered as {} with quantization {}; i8, u8, i16 or u16 with a "
                 "quantization is allowed",
                 where.text(), dtype_name(io.quant_dtype), io.quant.to_string());
  }
  const auto [low, high] = *range;
  // A zero point is a value of the type; outside of it no element can mean zero.
  for (const std::int32_t zero : io.quant.zero_points) {
    if (zero < low || zero > high) {
      return error(Code::kInvalidArgument, "{} has zero point {}; {} allows {} to {}", where.text(),
                   zero, dtype_name(io.quant_dtype), low, high);
    }
  }
  return {};
}

Status check_quant(const Where& where, const Quant& quant, const Shape& shape) {
  if (quant.axis < -1) {
    return error(Code::kInvalidArgument,
                 "{} has quantization axis {}; -1 (per tensor) or an index into {} is allowed",
                 where.text(), quant.axis, shape.to_string());
  }
  // Fields that the kind does not use stay at their defaults: equal descriptions, equal bytes.
  const bool affine = quant.kind == QuantKind::kAffine;
  const bool idle = (affine || (quant.scales.empty() && quant.zero_points.empty())) &&
                    (affine || quant.axis == -1) &&
                    (quant.kind == QuantKind::kDfp || quant.fl == 0);
  if (quant.kind <= QuantKind::kAffine && !idle) {
    return error(Code::kInvalidArgument,
                 "{} has quantization {} with parameters of another kind (axis {}, fl {}, {} "
                 "scales)",
                 where.text(), quant.to_string(), quant.axis, quant.fl, quant.scales.size());
  }
  if (Status s = quant.check(shape); !s.ok()) return s.wrap(where.text());
  return {};
}

Status check_types(const Where& where, const IoEntry& io) {
  const auto known = [](DType t) { return static_cast<std::size_t>(t) < kDTypeCount; };
  if (io.desc.dtype == DType::kUndefined || !known(io.desc.dtype) || !known(io.reported_dtype)) {
    return error(Code::kInvalidArgument,
                 "{} has element type {} and reports {}; a known element type is needed",
                 where.text(), static_cast<int>(io.desc.dtype),
                 static_cast<int>(io.reported_dtype));
  }
  if (io.preferred_layout > LayoutKind::kNC1HWC2) {
    return error(Code::kInvalidArgument, "{} prefers layout {}; plain, nhwc or nc1hwc2 is allowed",
                 where.text(), static_cast<int>(io.preferred_layout));
  }
  // Symbols go by position, so half a list says nothing.
  const std::size_t names = io.desc.dim_names.size();
  if (names != 0 && names != io.desc.shape.rank()) {
    return error(Code::kInvalidArgument,
                 "{} of rank {} has {} dimension names; none, or one "
                 "for each dimension, is allowed",
                 where.text(), io.desc.shape.rank(), names);
  }
  return {};
}

bool is_value(const IoEntry& io) { return !io.desc.value.empty(); }

/// A flat form is bytes of any length, which nothing reads but the engine.
Status check_value(const Where& where, const IoEntry& io) {
  const ValueType& type = io.desc.value;
  if (type.empty()) {
    if (!type.shape && type.dim_names.empty() && type.layers.empty()) return {};
    return error(Code::kInvalidArgument, "{} has a value without a type", where.text());
  }
  const TensorDesc& desc = io.desc;
  const bool plain = desc.dtype == DType::kU8 && desc.shape == Shape{Shape::kOpen} &&
                     desc.layout == Layout{} && desc.quant == Quant{} && desc.dim_names.empty() &&
                     io.quant_dtype == DType::kUndefined && io.reported_dtype == DType::kU8 &&
                     !io.partial_allowed;
  if (!plain) {
    return error(Code::kInvalidArgument,
                 "{} is a {} and {} {}; its flat form is u8 of shape [?], and no more",
                 where.text(), type.to_string(), dtype_name(desc.dtype), desc.shape.to_string());
  }
  const auto again = parse_value_type(type.to_string());
  if (!again) return again.error().wrap(Code::kInvalidArgument, where.text());
  if (again->layers != type.layers)
    return error(Code::kInvalidArgument, "{} has a layer of no kind", where.text());
  if (type.shape) CORELANE_TRY(check_shape(where, *type.shape));
  if (type.dim_names.empty() || (type.shape && type.dim_names.size() == type.shape->rank()))
    return {};
  return error(Code::kInvalidArgument, "{} has {} dimension names that do not fit its shape",
               where.text(), type.dim_names.size());
}

Status check_entry(std::string_view side, const IoEntry& io) {
  const Where where{side, io.desc.name};
  if (io.desc.name.empty()) return error(Code::kInvalidArgument, "an {} has no name", side);
  CORELANE_TRY(check_shape(where, io.desc.shape));
  CORELANE_TRY(check_types(where, io));
  CORELANE_TRY(check_value(where, io));
  CORELANE_TRY(check_layout(where, io.desc));
  CORELANE_TRY(check_size(where, io.desc));
  CORELANE_TRY(check_quant(where, io.desc.quant, io.desc.shape));
  CORELANE_TRY(check_quant(where, io.quant, io.desc.shape));
  CORELANE_TRY(check_boundary(where, io));
  if (io.partial_allowed && where.side != "input")
    return error(Code::kInvalidArgument, "{} is partial; only inputs may be", where.text());
  CORELANE_TRY(check_normalisation(where, io, io.mean, "mean"));
  return check_normalisation(where, io, io.std, "std");
}

Status check_entries(std::string_view side, const std::vector<IoEntry>& entries) {
  if (entries.size() > format::kMaxIo) {
    return error(Code::kInvalidArgument, "{} {}s; at most {} are allowed", entries.size(), side,
                 format::kMaxIo);
  }
  // Inputs and outputs are two name spaces: a value may be both.
  std::set<std::string_view> names;
  for (const IoEntry& io : entries) {
    CORELANE_TRY(check_entry(side, io));
    if (!names.insert(io.desc.name).second) {
      return error(Code::kInvalidArgument, "two {}s are named '{}'; each name is used once", side,
                   io.desc.name);
    }
  }
  return {};
}

Status check_shape_sets(const ProgramDescription& d) {
  for (std::size_t k = 0; k < d.shape_sets.size(); ++k) {
    const auto& set = d.shape_sets[k];
    if (set.size() != d.inputs.size()) {
      return error(Code::kInvalidArgument,
                   "shape set {} has {} shapes for {} inputs; one for each is needed", k,
                   set.size(), d.inputs.size());
    }
    for (std::size_t i = 0; i < set.size(); ++i) {
      // elements() also refuses a product of dimensions that overflows.
      if (d.inputs[i].desc.shape.accepts(set[i]) && set[i].elements()) continue;
      return error(Code::kInvalidArgument,
                   "shape set {} gives {} for input '{}', which is declared {}; a shape without "
                   "open dimensions that fits it is needed",
                   k, set[i].to_string(), d.inputs[i].desc.name,
                   d.inputs[i].desc.shape.to_string());
    }
  }
  return {};
}

Status check_operators(const ProgramDescription& d) {
  // Two domains may each have an operator of one name.
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const CustomOperatorDecl& op : d.custom_operators) {
    if (op.type.empty()) {
      return error(Code::kInvalidArgument, "a custom operator of domain '{}' has no type",
                   op.domain);
    }
    if (!seen.emplace(op.domain, op.type).second) {
      return error(Code::kInvalidArgument, "custom operator '{}' of domain '{}' is declared twice",
                   op.type, op.domain);
    }
  }
  for (const ImportFinding& f : d.findings) {
    if (f.kind > ImportFinding::Kind::kWarning) {
      return error(Code::kInvalidArgument,
                   "a finding of node '{}' has kind {}; 0 and 1 are allowed", f.node,
                   static_cast<int>(f.kind));
    }
  }
  return {};
}

}  // namespace

Status check_batch_range(const ProgramDescription& d) {
  if (!d.batch_range) return {};
  const auto [low, high] = *d.batch_range;
  if (low < 1 || high < low || high > kMostBatch) {
    return error(Code::kInvalidArgument, "batch range {} to {}; 1 to {}, in order, is allowed", low,
                 high, kMostBatch);
  }
  if (d.batch != 1 || !d.shape_sets.empty()) {
    return error(Code::kInvalidArgument,
                 "a batch range with batch {} and {} shape sets; batch 1 and none are needed",
                 d.batch, d.shape_sets.size());
  }
  bool open = false;
  for (const IoEntry& io : d.inputs) {
    const Shape& shape = io.desc.shape;
    for (std::size_t i = 0; i < shape.rank(); ++i) {
      if (shape[i] != Shape::kOpen) continue;
      if (i > 0) {
        return error(Code::kInvalidArgument,
                     "input '{}' {} leaves dimension {} open; with a batch range dimension 0 alone "
                     "may be open",
                     io.desc.name, shape.to_string(), i);
      }
      open = true;
    }
  }
  if (open) return {};
  return error(Code::kInvalidArgument, "a batch range, but no input has an open dimension 0");
}

namespace {

/// The entry of a name; null where there is none.
const IoEntry* find_entry(const std::vector<IoEntry>& entries, const std::string& name) {
  const auto at = std::ranges::find(entries, name, [](const IoEntry& e) { return e.desc.name; });
  return at == entries.end() ? nullptr : &*at;
}

Status no_entry(const StateDecl& state, std::string_view side, const std::string& name,
                const std::vector<IoEntry>& entries) {
  constexpr std::size_t kNamed = 16;
  std::string names;
  for (std::size_t i = 0; i < entries.size() && i < kNamed; ++i)
    names += (i == 0 ? "'" : ", '") + entries[i].desc.name + "'";
  if (entries.size() > kNamed) names += ", ...";
  return error(Code::kInvalidArgument, "state '{}={}': there is no {} '{}'; the {}s are {}",
               state.output, state.input, side, name, side, names.empty() ? "none" : names);
}

Status check_state(const ProgramDescription& d, const StateDecl& state) {
  const IoEntry* const output = find_entry(d.outputs, state.output);
  if (output == nullptr) return no_entry(state, "output", state.output, d.outputs);
  const IoEntry* const input = find_entry(d.inputs, state.input);
  if (input == nullptr) return no_entry(state, "input", state.input, d.inputs);
  const std::string name = fmt::format("state '{}={}'", state.output, state.input);
  if (is_value(*output) || is_value(*input) || output->desc.dtype == DType::kString)
    return error(Code::kInvalidArgument, "{}: one is not a tensor of numbers; state has to be",
                 name);
  if (output->desc.dtype != input->desc.dtype || !(output->desc.layout == input->desc.layout))
    return error(Code::kInvalidArgument,
                 "{}: the output is {}, the input is {}; both need one element type and layout",
                 name, output->desc.to_string(), input->desc.to_string());
  const auto fits = [&](const Shape& shape) { return may_be_equal(output->desc.shape, shape); };
  if (!fits(input->desc.shape))
    return error(Code::kInvalidArgument,
                 "{}: the output is {}, the input is {}; both need the same dimensions", name,
                 output->desc.shape.to_string(), input->desc.shape.to_string());
  const auto index = static_cast<std::size_t>(input - d.inputs.data());
  for (std::size_t k = 0; k < d.shape_sets.size(); ++k)
    if (!fits(d.shape_sets[k][index]))
      return error(Code::kInvalidArgument,
                   "{}: the output is {}, in shape set {} the input is {}; both need the same "
                   "dimensions",
                   name, output->desc.shape.to_string(), k, d.shape_sets[k][index].to_string());
  return {};
}

}  // namespace

bool may_be_equal(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (std::size_t i = 0; i < a.rank(); ++i)
    if (a[i] != b[i] && a[i] != Shape::kOpen && b[i] != Shape::kOpen) return false;
  return true;
}

Status check_states(const ProgramDescription& d) {
  if (d.states.empty()) return {};
  if (d.batch_range)
    return error(Code::kInvalidArgument,
                 "a batch range with {} states; a state is of one size, so leave one of them out",
                 d.states.size());
  std::set<std::string_view> outputs;
  std::set<std::string_view> inputs;
  for (const StateDecl& state : d.states) {
    CORELANE_TRY(check_state(d, state));
    const bool first_output = outputs.insert(state.output).second;
    if (inputs.insert(state.input).second && first_output) continue;
    return error(Code::kInvalidArgument,
                 "state '{}={}': {} '{}' is in a state already; each is in one at most",
                 state.output, state.input, first_output ? "input" : "output",
                 first_output ? state.input : state.output);
  }
  return {};
}

Status check_description(const ProgramDescription& d) {
  // Inputs may be missing: a network of constants is one. A network without results is none.
  if (d.outputs.empty()) {
    return error(Code::kInvalidArgument, "program '{}' has no output; one at least is needed",
                 d.name);
  }
  if (d.batch == 0) return error(Code::kInvalidArgument, "batch is 0; 1 or more is allowed");
  if (d.cores == 0 || d.cores > kMaxCores) {
    return error(Code::kInvalidArgument, "{} cores are wanted; 1 to {} are allowed", d.cores,
                 kMaxCores);
  }
  if (d.custom_string.size() > format::kMaxCustomString) {
    return error(Code::kInvalidArgument, "the custom string has {} bytes; at most {} are allowed",
                 d.custom_string.size(), format::kMaxCustomString);
  }
  CORELANE_TRY(check_entries("input", d.inputs));
  CORELANE_TRY(check_entries("output", d.outputs));
  CORELANE_TRY(check_entries("initializer", d.overridable));
  // Their shapes are not those of what they hold.
  if (has_values({&d, 1}) && (d.batch != 1 || d.batch_range || !d.shape_sets.empty())) {
    return error(Code::kInvalidArgument,
                 "a batch or a list of shapes with an input or output that is not a tensor of "
                 "numbers; neither can be");
  }
  CORELANE_TRY(check_shape_sets(d));
  CORELANE_TRY(check_batch_range(d));
  CORELANE_TRY(check_states(d));
  return check_operators(d);
}

bool has_opaque_types(std::span<const ProgramDescription> parts) {
  const auto small = [](const IoEntry& io) {
    return is_opaque(io.desc.dtype) || is_opaque(io.reported_dtype);
  };
  return std::ranges::any_of(parts, [&](const ProgramDescription& d) {
    return std::ranges::any_of(d.inputs, small) || std::ranges::any_of(d.outputs, small);
  });
}

bool has_values(std::span<const ProgramDescription> parts) {
  return std::ranges::any_of(parts, [](const ProgramDescription& d) {
    return std::ranges::any_of(d.inputs, is_value) || std::ranges::any_of(d.outputs, is_value);
  });
}

Status check_parts(std::span<const ProgramDescription> parts) {
  if (parts.empty() || parts.size() > format::kMaxParts) {
    return error(Code::kInvalidArgument, "{} networks; 1 to {} are allowed", parts.size(),
                 format::kMaxParts);
  }
  if (!has_parts(parts) && parts.size() == 1) return check_description(parts.front());
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& name = parts[i].part;
    if (name.empty()) {
      return error(Code::kInvalidArgument,
                   "network {} of {} has no name; in a file of several each has one", i,
                   parts.size());
    }
    if (name.size() > format::kMaxPartName) {
      return error(Code::kInvalidArgument,
                   "the name of part {} has {} bytes; at most {} are allowed", i, name.size(),
                   format::kMaxPartName);
    }
    if (!names.insert(name).second) {
      return error(Code::kInvalidArgument, "two parts are named '{}'; each name is used once",
                   name);
    }
    if (Status s = check_description(parts[i]); !s.ok())
      return s.wrap(fmt::format("part '{}'", name));
  }
  return {};
}

}  // namespace corelane
