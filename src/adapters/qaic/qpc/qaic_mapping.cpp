#include "adapters/qaic/qpc/qaic_mapping.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "adapters/qaic/qpc/qaic_io_descriptor.h"
#include "corelane/program/program_file.h"
#include "corelane/runtime/output_shapes.h"

namespace corelane::qaic {
namespace {

constexpr std::uint64_t kMostBytes = std::numeric_limits<std::uint32_t>::max();

std::optional<QAicBufferDataTypeEnum> type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return BUFFER_DATA_TYPE_FLOAT;
    case DType::kF16:
      return BUFFER_DATA_TYPE_FLOAT16;
    case DType::kBF16:
      return BUFFER_DATA_TYPE_BFLOAT16;
    case DType::kI8:
    case DType::kBool:
      return BUFFER_DATA_TYPE_INT8;
    case DType::kU8:
      return BUFFER_DATA_TYPE_UINT8;
    case DType::kI32:
      return BUFFER_DATA_TYPE_INT32I;
    case DType::kI64:
      return BUFFER_DATA_TYPE_INT64I;
    default:
      return std::nullopt;
  }
}

/// Whether the bytes are UTF-8 by their leading bits; a descriptor holds no other texts.
bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    std::size_t more = 0;
    if (lead >= 0xf8 || (lead >= 0x80 && lead < 0xc2)) return false;
    if (lead >= 0xc2) more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    for (; more > 0; --more, ++i)
      if (i == text.size() || (static_cast<unsigned char>(text[i]) & 0xc0U) != 0x80U) return false;
  }
  return true;
}

/// An input or output before its shapes are known.
Result<IoMapping> begin_mapping(const IoEntry& entry, QAicBufferIoTypeEnum direction) {
  IoMapping mapping;
  mapping.name = entry.desc.name;
  mapping.direction = direction;
  mapping.dtype = entry.desc.dtype;
  mapping.partial = entry.partial_allowed;
  // The descriptor is a protobuf, whose texts are UTF-8, and the lists have names as C strings.
  if (!is_utf8(mapping.name) || mapping.name.find('\0') != mapping.name.npos) {
    return error(
        Code::kUnsupportedModel,
        "the name of an input or output, of {} bytes, is not a text of UTF-8; rename it in "
        "the model",
        mapping.name.size());
  }
  if (!entry.desc.value.empty()) {
    return error(
        Code::kUnsupportedModel,
        "'{}' is a {}, for which the API has no buffer; use the session or the C++ runtime",
        entry.desc.name, entry.desc.value.to_string());
  }
  const auto type = type_of(entry.desc.dtype);
  if (!type) {
    return error(
        Code::kUnsupportedModel,
        "'{}' is of {}, for which the API has no number; allowed are f32, f16, bf16, i8, u8, "
        "i32, i64 and bool: add a Cast to the model",
        entry.desc.name, dtype_name(entry.desc.dtype));
  }
  mapping.type = *type;
  // It is not 0: the types above take whole bytes.
  mapping.element_size = static_cast<std::uint32_t>(dtype_bytes(entry.desc.dtype, 1));
  return mapping;
}

/// Adds the shape of the next specialization.
Status add_shape(IoMapping& mapping, const Shape& shape) {
  const auto elements = shape.elements();
  const bool fits = elements && *elements <= kMostBytes / mapping.element_size &&
                    std::ranges::all_of(shape.dims(), [](std::int64_t d) {
                      return static_cast<std::uint64_t>(d) <= kMostBytes;
                    });
  if (!fits) {
    return error(Code::kUnsupportedModel,
                 "'{}' of {} {} does not fit into the API's 32-bit sizes; {} bytes are allowed",
                 mapping.name, dtype_name(mapping.dtype), shape.to_string(), kMostBytes);
  }
  const auto bytes = static_cast<std::uint32_t>(*elements * mapping.element_size);
  mapping.bytes = std::max(mapping.bytes, bytes);
  mapping.shapes.emplace_back(shape.dims().begin(), shape.dims().end());
  return {};
}

Status add_inputs(const ProgramDescription& description, QpcProgram& program) {
  for (std::size_t i = 0; i < description.inputs.size(); ++i) {
    const IoEntry& entry = description.inputs[i];
    CORELANE_ASSIGN(IoMapping mapping, begin_mapping(entry, BUFFER_IO_TYPE_INPUT));
    if (description.shape_sets.empty()) {
      if (!entry.desc.shape.is_static()) {
        return error(Code::kUnsupportedModel,
                     "input '{}' has open dimensions, {}; compile with one `--shape-set` for each "
                     "combination of shapes, or fix it with `--shape`",
                     mapping.name, entry.desc.shape.to_string());
      }
      CORELANE_TRY(add_shape(mapping, entry.desc.shape));
    }
    for (const auto& set : description.shape_sets) CORELANE_TRY(add_shape(mapping, set[i]));
    program.mappings.push_back(std::move(mapping));
  }
  program.inputs = program.mappings.size();
  program.specializations = std::max<std::size_t>(description.shape_sets.size(), 1);
  return {};
}

Status add_outputs(const ProgramDescription& description,
                   const std::vector<std::vector<std::optional<Shape>>>& shapes,
                   QpcProgram& program) {
  for (std::size_t i = 0; i < description.outputs.size(); ++i) {
    CORELANE_ASSIGN(IoMapping mapping,
                    begin_mapping(description.outputs[i], BUFFER_IO_TYPE_OUTPUT));
    for (const auto& set : shapes) {
      if (!set[i]) {
        return error(Code::kUnsupportedModel,
                     "the shape of output '{}' is known after a run only, and the API's buffers "
                     "have fixed sizes; give the model an output of a fixed shape",
                     mapping.name);
      }
      CORELANE_TRY(add_shape(mapping, *set[i]));
    }
    program.mappings.push_back(std::move(mapping));
  }
  return {};
}

/// Clients find them in their lists as buffers that may be left out.
void mark_states(const ProgramDescription& description, QpcProgram& program) {
  const auto mark = [&](const std::string& name, QAicBufferIoTypeEnum direction) {
    for (IoMapping& mapping : program.mappings)
      if (mapping.name == name && mapping.direction == direction)
        mapping.state = mapping.partial = true;
  };
  for (const StateDecl& state : description.states) {
    mark(state.input, BUFFER_IO_TYPE_INPUT);
    mark(state.output, BUFFER_IO_TYPE_OUTPUT);
  }
}

}  // namespace

Result<QpcProgram> map_program(const ProgramFile& file, std::size_t part) {
  const ProgramDescription& description = file.description(part);
  QpcProgram program;
  CORELANE_TRY(add_inputs(description, program));
  CORELANE_ASSIGN(const auto shapes, output_shapes(file, part));
  CORELANE_TRY(add_outputs(description, shapes, program));
  mark_states(description, program);
  CORELANE_ASSIGN(program.io_descriptor, write_io_descriptor(program));
  return program;
}

}  // namespace corelane::qaic
