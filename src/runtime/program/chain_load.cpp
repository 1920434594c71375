#include "runtime/program/chain_load.h"

#include <fmt/format.h>

#include <algorithm>

#include "corelane/device/device.h"
#include "corelane/program/program_file.h"
#include "corelane/runtime/chain_devices.h"
#include "corelane/runtime/program.h"
#include "runtime/chain/chain_device.h"

namespace corelane::runtime {
namespace {

std::vector<TensorDesc> descs_of(const std::vector<IoEntry>& entries) {
  std::vector<TensorDesc> descs;
  for (const IoEntry& entry : entries) descs.push_back(entry.desc);
  return descs;
}

Result<StageSource> stage_source(const std::shared_ptr<const ProgramFile>& file, std::size_t part,
                                 const device::DeviceInfo& info, const LoadOptions& options) {
  const ProgramDescription& description = file->description(part);
  const auto& kinds = info.capabilities.image_kinds;
  if (std::ranges::find(kinds, "onnx") == kinds.end())
    return error(
        Code::kForeignImage,
        "part '{}': device '{}' takes images of kind {} only, not the networks of a chain; "
        "choose another device",
        description.part, info.instance, fmt::join(kinds, ", "));
  StageSource stage;
  stage.name = description.part;
  auto image = network_source(file, part, options, info);
  if (!image) return error(image.error().wrap(fmt::format("part '{}'", description.part)));
  stage.image = std::move(*image);
  stage.inputs = descs_of(description.inputs);
  stage.outputs = descs_of(description.outputs);
  return stage;
}

}  // namespace

Result<ChainOnDevice> chain_on(const std::shared_ptr<const ProgramFile>& file,
                               std::shared_ptr<device::Device> device, const LoadOptions& options) {
  const std::size_t parts = file->part_count() - 1;
  ChainOnDevice made{std::move(device), {}};
  auto chain = std::dynamic_pointer_cast<ChainDevice>(made.device);
  if (chain == nullptr) {
    const std::vector<std::shared_ptr<device::Device>> places(parts, made.device);
    CORELANE_ASSIGN(made.device, chain_devices(places));
    chain = std::dynamic_pointer_cast<ChainDevice>(made.device);
  }
  if (chain->parts() != parts)
    return error(Code::kInvalidArgument,
                 "'{}' was cut into {} parts, and '{}' has devices for {}; name one device for "
                 "each part",
                 file->description().part, parts, chain->info().instance, chain->parts());
  made.source.kind = kChainImage;
  made.source.immutable = true;
  for (std::size_t part = 0; part < parts; ++part) {
    CORELANE_ASSIGN(StageSource stage,
                    stage_source(file, part + 1, chain->device_of(part)->info(), options));
    made.source.constants = stage.image.constants;
    made.source.immutable = made.source.immutable && stage.image.immutable;
    made.source.stages.push_back(std::move(stage));
  }
  made.source.owners.push_back(file);
  return made;
}

Result<std::shared_ptr<device::Executable>> prepare_parts(
    const std::shared_ptr<device::Device>& device, const ImageSource& source,
    const ProgramDescription& description, const device::PrepareOptions& options) {
  ChainImage chain{
      description.name, descs_of(description.inputs), descs_of(description.outputs), {}};
  for (const StageSource& stage : source.stages) {
    device::Image& part = chain.stages.emplace_back(image_of(stage.image));
    part.name = stage.name;
    part.inputs = stage.inputs;
    part.outputs = stage.outputs;
  }
  // chain_on() has made sure of it.
  return std::static_pointer_cast<ChainDevice>(device)->prepare_chain(chain, options);
}

}  // namespace corelane::runtime
