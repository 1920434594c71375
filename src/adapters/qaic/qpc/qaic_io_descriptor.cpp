#include "adapters/qaic/qpc/qaic_io_descriptor.h"

#include "QAicApi.pb.h"
#include "adapters/qaic/qpc/qaic_mapping.h"

namespace corelane::qaic {
namespace {

aicapi::bufferIoDirectionEnum direction_of(const IoMapping& mapping) {
  return mapping.direction == BUFFER_IO_TYPE_INPUT ? aicapi::BUFFER_IO_TYPE_INPUT
                                                   : aicapi::BUFFER_IO_TYPE_OUTPUT;
}

aicapi::bufferIoDataTypeEnum type_of(const IoMapping& mapping) {
  return static_cast<aicapi::bufferIoDataTypeEnum>(mapping.type);
}

/// The specialization that needs most bytes; the first of equal ones.
const std::vector<std::uint32_t>& largest(const IoMapping& mapping) {
  const auto elements = [](const std::vector<std::uint32_t>& dims) {
    std::uint64_t product = 1;
    for (const std::uint32_t d : dims) product *= d;
    return product;
  };
  const std::vector<std::uint32_t>* found = &mapping.shapes.front();
  for (const auto& dims : mapping.shapes)
    if (elements(dims) > elements(*found)) found = &dims;
  return *found;
}

void fill_binding(const IoMapping& mapping, std::uint32_t index, aicapi::IoBinding& binding) {
  binding.set_name(mapping.name);
  binding.set_index(index);
  binding.set_dir(direction_of(mapping));
  binding.set_type(type_of(mapping));
  for (const std::uint32_t d : largest(mapping)) binding.add_dims(d);
  binding.set_size(mapping.bytes);
  binding.set_is_partial_buf_allowed(mapping.partial);
  auto& place = *binding.add_dma_buf_info();
  place.set_dma_buf_index(index);
  place.set_dma_size(mapping.bytes);
}

void fill_set(const QpcProgram& program, const char* name, aicapi::IoSet& set) {
  set.set_name(name);
  for (std::uint32_t i = 0; i < program.mappings.size(); ++i)
    fill_binding(program.mappings[i], i, *set.add_bindings());
}

void fill_shapes(const QpcProgram& program, aicapi::IoDesc& desc) {
  if (program.specializations < 2) return;
  for (std::size_t k = 0; k < program.specializations; ++k) {
    auto& tuple = *desc.add_allowed_shapes();
    for (const IoMapping& mapping : program.mappings) {
      auto& shape = *tuple.add_shapes();
      shape.set_type(type_of(mapping));
      for (const std::uint32_t d : mapping.shapes[k]) shape.add_dims(d);
    }
  }
}

}  // namespace

Result<std::vector<std::uint8_t>> write_io_descriptor(const QpcProgram& program) {
  aicapi::IoDesc desc;
  // Both are the same: each tensor is transferred by itself.
  fill_set(program, "default", *desc.add_io_sets());
  fill_set(program, "dma", *desc.add_io_sets());
  *desc.mutable_selected_set() = desc.io_sets(0);
  for (const IoMapping& mapping : program.mappings) {
    auto& buffer = *desc.add_dma_buf();
    buffer.set_size(mapping.bytes);
    buffer.set_dir(direction_of(mapping));
  }
  fill_shapes(program, desc);
  std::vector<std::uint8_t> bytes(desc.ByteSizeLong());
  if (!desc.SerializeToArray(bytes.data(), static_cast<int>(bytes.size())))
    return error(Code::kInternal, "protobuf cannot write the descriptor of {} tensors",
                 program.mappings.size());
  return bytes;
}

Status check_io_descriptor(ByteSpan bytes, const QpcProgram& program) {
  aicapi::IoDesc desc;
  if (!desc.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return error(
        Code::kInvalidArgument,
        "{} bytes that are not an aicapi.IoDesc; pass what qaicProgramGetIoDescriptor gave",
        bytes.size());
  }
  const aicapi::IoSet& set = desc.selected_set();
  if (set.name() != "default" && set.name() != "dma") {
    return error(Code::kInvalidArgument,
                 "the descriptor selects the set '{}'; 'default' and 'dma' are allowed",
                 set.name());
  }
  bool same = static_cast<std::size_t>(set.bindings_size()) == program.mappings.size();
  for (int i = 0; same && i < set.bindings_size(); ++i)
    same = set.bindings(i).name() == program.mappings[static_cast<std::size_t>(i)].name &&
           set.bindings(i).index() == static_cast<std::uint32_t>(i);
  if (!same) {
    return error(Code::kInvalidArgument,
                 "the set '{}' of the descriptor is not that of this program; pass what "
                 "qaicProgramGetIoDescriptor gave of it",
                 set.name());
  }
  return {};
}

}  // namespace corelane::qaic
