#include "runtime/chain/chain_executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "corelane/base/log.h"
#include "runtime/chain/chain_device.h"

namespace corelane::runtime {
namespace {

std::uint64_t bytes_of(const std::vector<TensorDesc>& tensors) {
  std::uint64_t sum = 0;
  for (const TensorDesc& desc : tensors)
    if (const auto bytes = desc.bytes()) sum += *bytes;
  return sum;
}

bool any_open(const std::vector<TensorDesc>& tensors) {
  return std::ranges::any_of(tensors, [](const TensorDesc& t) { return !t.shape.is_static(); });
}

}  // namespace

Result<std::shared_ptr<device::Executable>> ChainExecutable::make(
    std::shared_ptr<ChainDevice> device, const ChainImage& image,
    const device::PrepareOptions& options) {
  if (image.stages.size() != device->parts())
    return error(Code::kInvalidArgument,
                 "'{}' was cut into {} parts, and '{}' has devices for {}; name one device for "
                 "each part",
                 image.name, image.stages.size(), device->info().instance, device->parts());
  std::shared_ptr<ChainExecutable> made(new ChainExecutable(std::move(device)));
  CORELANE_ASSIGN(made->routes_, ChainRoutes::make(image));
  CORELANE_TRY(made->prepare_parts(image, options));
  CORELANE_TRY(made->describe(image));
  return made;
}

/// Where the part can be had with open dimensions, the sizes are to blame, and not the model.
Status ChainExecutable::refusal(const ChainImage& image, std::size_t part,
                                const device::PrepareOptions& options, const Status& why) const {
  const device::Image& stage = image.stages[part];
  device::Device& device = *device_->device_of(part);
  Status told =
      why.wrap(fmt::format("part '{}' on device '{}'", stage.name, device.info().instance));
  if (why.code() != Code::kUnsupportedModel || options.input_shapes.size() != image.inputs.size() ||
      !any_open(stage.inputs) || !device.info().capabilities.dynamic_shapes)
    return told;
  device::PrepareOptions declared = options;
  declared.input_shapes.clear();
  if (!device.prepare(stage, declared)) return told;
  log::debug("runtime", "{}", told.to_string());
  std::vector<std::string> shapes;
  for (std::size_t i = 0; i < image.inputs.size(); ++i)
    shapes.push_back(image.inputs[i].name + " " + options.input_shapes[i].to_string());
  const std::string_view node = why.detail(Detail::kNode);
  return error(Code::kShapeMismatch,
               "the network does not take inputs of the shapes {}: part '{}' refuses them{}; give "
               "sizes that go together",
               fmt::join(shapes, ", "), stage.name,
               node.empty() ? "" : fmt::format(" at node '{}'", node));
}

Status ChainExecutable::prepare_parts(const ChainImage& image,
                                      const device::PrepareOptions& options) {
  // The shape of each value so far, by name: a part is prepared for what the parts before it make.
  std::map<std::string, Shape> known;
  for (std::size_t i = 0; i < image.inputs.size(); ++i)
    known[image.inputs[i].name] =
        i < options.input_shapes.size() ? options.input_shapes[i] : image.inputs[i].shape;
  for (std::size_t part = 0; part < image.stages.size(); ++part) {
    const device::Image& stage = image.stages[part];
    device::PrepareOptions own = options;
    own.input_shapes.clear();
    for (const TensorDesc& input : stage.inputs) own.input_shapes.push_back(known[input.name]);
    auto prepared = device_->device_of(part)->prepare(stage, own);
    if (!prepared) return refusal(image, part, options, prepared.error());
    const auto& outputs = (*prepared)->outputs();
    if (outputs.size() != stage.outputs.size() ||
        (*prepared)->inputs().size() != stage.inputs.size())
      return error(Code::kMalformed,
                   "part '{}' declares {} inputs and {} outputs, and its image has {} and {}",
                   stage.name, stage.inputs.size(), stage.outputs.size(),
                   (*prepared)->inputs().size(), outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i)
      known[stage.outputs[i].name] = outputs[i].shape;
    parts_.push_back(std::move(*prepared));
    names_.push_back(stage.name);
  }
  return {};
}

/// As the parts have them. Later parts are submitted before the sizes of a run are known, so a
/// value between two of them has one size.
Status ChainExecutable::describe(const ChainImage& image) {
  for (std::size_t i = 0; i < image.inputs.size(); ++i) {
    // Each input has a reader, see ChainRoutes::make().
    const PartTensor& at = routes_.inputs[i].front();
    TensorDesc desc = parts_[at.part]->inputs()[at.index];
    desc.name = image.inputs[i].name;
    inputs_.push_back(std::move(desc));
  }
  for (std::size_t i = 0; i < image.outputs.size(); ++i) {
    const PartTensor& at = routes_.outputs[i];
    TensorDesc desc = parts_[at.part]->outputs()[at.index];
    desc.name = image.outputs[i].name;
    outputs_.push_back(std::move(desc));
  }
  for (const InnerValue& value : routes_.inner) {
    const TensorDesc& made = parts_[value.from.part]->outputs()[value.from.index];
    if (!made.shape.is_static())
      return error(
          Code::kUnsupportedModel,
          "the size of '{}', which part '{}' hands on, is known only after a run ({}); "
          "{}cut elsewhere",
          value.name, names_[value.from.part], made.shape.to_string(),
          any_open(image.inputs) ? "fix the inputs' dimensions when it is compiled, or " : "");
    for (const PartTensor& at : value.to) {
      const TensorDesc& read = parts_[at.part]->inputs()[at.index];
      if (read.dtype != made.dtype)
        return error(Code::kMalformed, "part '{}' makes '{}' as {}, part '{}' reads {}",
                     names_[value.from.part], value.name, dtype_name(made.dtype), names_[at.part],
                     dtype_name(read.dtype));
    }
  }
  bytes_in_ = bytes_of(inputs_);
  bytes_out_ = bytes_of(outputs_);
  return {};
}

device::Placement ChainExecutable::placement() const noexcept {
  const device::Placement first = parts_.front()->placement();
  const bool same =
      std::ranges::all_of(parts_, [&](const auto& part) { return part->placement() == first; });
  return same ? first : device::Placement::kOpaque;
}

/// Names each engine once, if the parts run on several.
device::EngineChoice ChainExecutable::engine() const {
  device::EngineChoice choice;
  std::vector<std::string> names;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    device::EngineChoice own = parts_[part]->engine();
    if (own.engine.empty()) own.engine = device_->device_of(part)->info().engine;
    if (std::ranges::find(names, own.engine) == names.end()) names.push_back(own.engine);
    if (choice.why.empty() && !own.why.empty())
      choice.why = fmt::format("part '{}': {}", names_[part], own.why);
  }
  choice.engine = fmt::format("{}", fmt::join(names, " + "));
  if (choice.engine == device_->info().engine) choice.engine.clear();
  return choice;
}

bool ChainExecutable::lost() const noexcept {
  return std::ranges::any_of(parts_, [](const auto& part) { return part->lost(); });
}

device::MemoryFigures ChainExecutable::memory() const {
  device::MemoryFigures sum;
  for (const auto& part : parts_) sum += part->memory();
  sum.internal += inner_->load(std::memory_order_relaxed);
  return sum;
}

Result<std::shared_ptr<device::Bindings>> ChainExecutable::new_bindings() {
  return ChainBindings::make(shared_from_this());
}

Result<std::shared_ptr<device::Residence>> ChainExecutable::make_resident(
    const device::CoreSet& cores, device::Residency residency) {
  return ChainResidence::make(shared_from_this(), cores, residency);
}

Result<device::Executable::Precompiled> ChainExecutable::export_precompiled() const {
  return error(Code::kUnsupported, "a chain of parts has no pre-compiled form");
}

}  // namespace corelane::runtime
