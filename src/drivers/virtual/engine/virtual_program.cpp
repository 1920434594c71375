#include "drivers/virtual/engine/virtual_program.h"

#include <algorithm>
#include <exception>
#include <unordered_map>
#include <utility>

#include "corelane/base/log.h"
#include "drivers/virtual/direct/direct_request.h"
#include "drivers/virtual/engine/engine_identity.h"
#include "drivers/virtual/engine/network.h"
#include "drivers/virtual/engine/virtual_request.h"

namespace corelane::drivers::virtual_npu {
namespace {

constexpr std::string_view kPart = "virtual";
constexpr std::string_view kInline = "-inline";
constexpr std::string_view kHop = "-hop";

/// A dtype this device computes with, for input or output `value`.
Result<DType> usable_dtype(const GraphValue& value, std::string_view role, DType dtype) {
  if (dtype == DType::kUndefined || dtype == DType::kString)
    return error(Code::kUnsupportedModel,
                 "{} '{}' has ONNX element type {}; this device takes f32 f16 bf16 f64, i4 to i64, "
                 "u4 to u64 and bool",
                 role, value.name, value.elem_type);
  return dtype;
}

Result<std::vector<TensorDesc>> describe_inputs(const std::vector<GraphValue>& values) {
  std::vector<TensorDesc> descs;
  for (const GraphValue& value : values) {
    if (!value.has_shape)
      return error(Code::kUnsupportedModel,
                   "input '{}' declares no shape; give one in PrepareOptions::input_shapes",
                   value.name);
    TensorDesc desc;
    desc.name = value.name;
    CORELANE_ASSIGN(desc.dtype, usable_dtype(value, "input", dtype_from_onnx(value.elem_type)));
    desc.shape = value.shape;
    descs.push_back(std::move(desc));
  }
  return descs;
}

std::string shapes_text(const std::vector<TensorDesc>& descs) {
  std::string text;
  for (const TensorDesc& desc : descs) {
    if (!text.empty()) text += ';';
    for (std::size_t i = 0; i < desc.shape.rank(); ++i) {
      if (i > 0) text += 'x';
      text += desc.shape[i] == Shape::kOpen ? "?" : std::to_string(desc.shape[i]);
    }
  }
  return text;
}

}  // namespace

Result<std::shared_ptr<VirtualProgram>> VirtualProgram::create(
    const device::Image& image, const device::PrepareOptions& options, std::size_t lanes,
    bool direct) {
  std::shared_ptr<VirtualProgram> program(new VirtualProgram(image, options, lanes));
  CORELANE_TRY(program->build(direct));
  return program;
}

Status VirtualProgram::build(bool direct) {
  CORELANE_ASSIGN(const PatchedModel patched, patch());
  CORELANE_ASSIGN(inputs_, describe_inputs(patched.inputs));
  shapes_ = shapes_text(inputs_);
  shared_ = lanes_ > 1 && patched.constant_bytes > options_.replicate_limit / (lanes_ - 1);
  if (!patched.custom_nodes.empty())
    operators_ = std::make_shared<HostOperators>(patched.custom_nodes, options_.host_operators);
  if (!try_precompiled(patched)) CORELANE_TRY(compile_first(patched));
  if (direct) find_direct(patched);
  return {};
}

void VirtualProgram::find_direct(const PatchedModel& patched) {
  if (operators_ || options_.profile_layers || options_.precision != device::Precision::kF32 ||
      patched.nodes > kDirectNodes || patched.constant_bytes > kDirectConstantBytes) {
    return;
  }
  for (const auto* descs : {&inputs_, &outputs_}) {
    for (const TensorDesc& desc : *descs) {
      if (desc.dtype != DType::kF32) return;
    }
  }
  auto network = read_network(patched, nullptr);
  if (!network) return;  // The engine has compiled it, and runs it.
  try {
    direct_ = DirectForms::make(*network, inputs_);
  } catch (const std::exception& e) {
    log::debug(kPart, "looking for a direct network: {}", e.what());
  }
}

Result<PatchedModel> VirtualProgram::patch() { return patch_onnx(image_, options_); }

std::string VirtualProgram::tag() const {
  std::string exposed;
  for (const std::string& name : options_.exposed_values) exposed += name + '\n';
  std::string text = fmt::format("openvino-{}-{}-{}{}-{}", engine_build(), engine_isa(),
                                 device::precision_name(options_.precision),
                                 options_.fast_math ? "-fast" : "", shapes_);
  if (!exposed.empty()) text += "-" + content_hash(as_byte_span(exposed));
  return text;
}

bool VirtualProgram::try_precompiled(const PatchedModel& patched) {
  if (image_.precompiled.empty()) return false;
  const std::string own = tag();
  never_throws_ = image_.precompiled_tag == own + std::string(kInline);
  if (operators_ || (!never_throws_ && image_.precompiled_tag != own + std::string(kHop))) {
    log::debug(kPart, "pre-compiled form '{}' does not fit '{}', compiling", image_.precompiled_tag,
               own);
    return false;
  }
  const bool shared_by_size = shared_;
  shared_ = lanes_ > 1 && (shared_by_size || !never_throws_);
  auto blob = std::make_shared<Blob>();
  blob->bytes = image_.precompiled;
  blob->owner = image_.keep_alive;
  auto copy = import_copy(blob, settings_for(1), options_);
  Status status = copy ? describe(patched, (*copy)->model()) : copy.error();
  if (!status.ok()) {
    log::debug(kPart, "pre-compiled form not taken, compiling: {}", status.to_string());
    shared_ = shared_by_size;
    outputs_.clear();
    return false;
  }
  blob_ = std::move(blob);
  copies_.emplace(key_for(1, 0), std::move(*copy));
  from_precompiled_ = true;
  return true;
}

Status VirtualProgram::compile_first(const PatchedModel& patched) {
  CORELANE_ASSIGN(const auto network, read_network(patched, operators_));
  Throwing throwing = Throwing::kMaybe;
  try {
    if (!operators_) throwing = throwing_of(*network);
  } catch (...) {
    return status_of_exception(Code::kInternal, "walking the network");
  }
  // What may throw must not run inline with one thread, so it goes through stream threads.
  const bool shared_by_size = shared_;
  never_throws_ = throwing != Throwing::kMaybe;
  shared_ = lanes_ > 1 && (shared_by_size || !never_throws_);
  CORELANE_ASSIGN(auto copy, compile_copy(network, settings_for(1), options_, patched.first_node));
  CORELANE_TRY(describe(patched, copy->model()));
  if (throwing == Throwing::kIfDynamic) {
    try {
      never_throws_ = all_static(*copy->model().get_runtime_model());
    } catch (...) {
      return status_of_exception(Code::kInternal, "walking the engine's graph");
    }
  }
  copies_.emplace(key_for(1, 0), std::move(copy));
  if (never_throws_ || shared_ || lanes_ == 1) return {};
  // Made for inline runs, and found to need stream threads.
  shared_ = true;
  CORELANE_ASSIGN(auto shared_copy, make_copy(settings_for(1)));
  copies_.clear();
  copies_.emplace(key_for(1, 0), std::move(shared_copy));
  return {};
}

Status VirtualProgram::describe(const PatchedModel& patched, const ov::CompiledModel& model) {
  try {
    std::unordered_map<std::string, int> ports;
    const auto& engine_inputs = model.inputs();
    for (std::size_t i = 0; i < engine_inputs.size(); ++i)
      ports.emplace(engine_inputs[i].get_node()->get_friendly_name(), static_cast<int>(i));
    engine_inputs_.clear();
    std::size_t found = 0;
    for (const TensorDesc& input : inputs_) {
      const auto port = ports.find(input.name);
      engine_inputs_.push_back(port == ports.end() ? -1 : port->second);
      found += port == ports.end() ? 0 : 1;
    }
    if (found != engine_inputs.size() || model.outputs().size() != patched.outputs.size())
      return error(Code::kUnsupportedModel,
                   "the engine made {} inputs and {} outputs of the network's {} and {}",
                   engine_inputs.size(), model.outputs().size(), inputs_.size(),
                   patched.outputs.size());
    for (std::size_t i = 0; i < patched.outputs.size(); ++i) {
      const auto& output = model.outputs()[i];
      TensorDesc desc;
      desc.name = patched.outputs[i].name;
      CORELANE_ASSIGN(desc.dtype, usable_dtype(patched.outputs[i], "output",
                                               dtype_of(output.get_element_type())));
      desc.shape = output.get_partial_shape().rank().is_dynamic() && patched.outputs[i].has_shape
                       ? patched.outputs[i].shape
                       : shape_of(output.get_partial_shape());
      outputs_.push_back(std::move(desc));
    }
    return {};
  } catch (...) {
    return status_of_exception(Code::kInternal, "describing the compiled network");
  }
}

CopySettings VirtualProgram::settings_for(std::size_t width) const {
  const std::size_t cpus = usable_cpus();
  if (width > 1 && cpus > 1) return {.streams = 1, .threads = std::min(width, cpus)};
  const std::size_t streams = shared_ ? std::min(lanes_, cpus) : 1;
  return {.streams = streams, .threads = streams};
}

VirtualProgram::Key VirtualProgram::key_for(std::size_t width, std::size_t core) const {
  const std::size_t threads = std::min(width, usable_cpus());
  if (threads > 1) return {threads, 0};
  return {1, shared_ ? 0 : core};
}

Result<VirtualProgram::CopyPtr> VirtualProgram::copy_for(std::size_t width, std::size_t core) {
  const std::lock_guard lock(mutex_);
  const Key key = key_for(width, core);
  const auto found = copies_.find(key);
  if (found != copies_.end()) return found->second;
  CORELANE_ASSIGN(CopyPtr copy, make_copy(settings_for(width)));
  copies_.emplace(key, copy);
  return copy;
}

/// With mutex_ held, or before anyone else has the program.
Result<VirtualProgram::CopyPtr> VirtualProgram::make_copy(const CopySettings& settings) {
  if (!operators_) {
    if (!blob_) {
      auto blob = export_blob(*copies_.begin()->second);
      if (blob) blob_ = std::move(*blob);
    }
    if (blob_) {
      auto copy = import_copy(blob_, settings, options_);
      if (copy) return copy;
      log::debug(kPart, "{}; compiling again", copy.error().to_string());
    }
  }
  CORELANE_ASSIGN(const PatchedModel patched, patch());
  CORELANE_ASSIGN(const auto network, read_network(patched, operators_));
  return compile_copy(network, settings, options_, patched.first_node);
}

Result<std::unique_ptr<device::LaneRequest>> VirtualProgram::new_request(std::size_t width,
                                                                         std::size_t core) {
  if (width == 0 || width > lanes_ || core >= lanes_)
    return error(Code::kInvalidArgument, "width {} from core {}: this device has {} cores", width,
                 core, lanes_);
  if (!direct_) return engine_request(width, core);
  return std::make_unique<DirectRequest>(
      shared_from_this(), direct_, [this, width, core] { return engine_request(width, core); });
}

Result<std::unique_ptr<device::LaneRequest>> VirtualProgram::engine_request(std::size_t width,
                                                                            std::size_t core) {
  CORELANE_ASSIGN(CopyPtr copy, copy_for(width, core));
  return VirtualRequest::create(shared_from_this(), std::move(copy), never_throws_);
}

Status VirtualProgram::check_shapes(const std::vector<Shape>& shapes) {
  Status made;
  std::call_once(shape_check_made_, [&] {
    try {
      auto patched = patch();
      auto network = patched ? read_network(*patched, operators_)
                             : Result<std::shared_ptr<ov::Model>>(tl::unexpect, patched.error());
      if (network) {
        shape_check_ = std::make_unique<ShapeCheck>(*network, inputs_);
      } else {
        made = network.error();
      }
    } catch (...) {
      made = status_of_exception(Code::kInternal, "reading the network for its shapes");
    }
  });
  // The engine has taken the network before; without our reading of it, it is the judge.
  if (!made.ok()) log::warn(kPart, "shapes are not checked: {}", made.to_string());
  return shape_check_ == nullptr ? Status() : shape_check_->check(shapes);
}

Status VirtualProgram::reserve(std::size_t width, std::size_t requests) {
  const bool per_core = key_for(width, 1).second == 1;
  const std::size_t copies =
      per_core ? std::min(requests, lanes_) : std::min<std::size_t>(requests, 1);
  for (std::size_t core = 0; core < copies; ++core) {
    if (auto copy = copy_for(width, core); !copy) return std::move(copy).error();
  }
  return {};
}

device::MemoryFigures VirtualProgram::memory() const {
  device::MemoryFigures figures;
  figures.internal = run_bytes_;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, copy] : copies_) {
    const CompiledCopy::Figures own = copy->figures();
    figures.weights += own.weights;
    figures.internal += own.internal;
    figures.code += own.code;
  }
  if (blob_) figures.weights += blob_->heap_bytes;
  return figures;
}

Result<device::Executable::Precompiled> VirtualProgram::export_precompiled() const {
  if (operators_)
    return error(Code::kUnsupported,
                 "a network with custom operators has no pre-compiled form; the engine cannot "
                 "store them");
  const std::lock_guard lock(mutex_);
  device::Executable::Precompiled result;
  result.tag = tag() + std::string(never_throws_ ? kInline : kHop);
  if (blob_) {
    result.bytes.assign(blob_->bytes.begin(), blob_->bytes.end());
    return result;
  }
  CORELANE_ASSIGN(const auto blob, export_blob(*copies_.begin()->second));
  result.bytes.assign(blob->bytes.begin(), blob->bytes.end());
  return result;
}

}  // namespace corelane::drivers::virtual_npu
