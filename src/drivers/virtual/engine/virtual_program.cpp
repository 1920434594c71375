#include "drivers/virtual/engine/virtual_program.h"

#include <algorithm>
#include <exception>
#include <unordered_map>
#include <utility>

#include "base/process/cpus.h"
#include "base/process/heap.h"
#include "corelane/base/log.h"
#include "drivers/virtual/common/graph_tensors.h"
#include "drivers/virtual/common/log_part.h"
#include "drivers/virtual/direct/direct_request.h"
#include "drivers/virtual/engine/engine_identity.h"
#include "drivers/virtual/engine/network.h"

namespace corelane::drivers::virtual_npu {
namespace {

// Ends of a pre-compiled form's tag: whether its jobs may run in the caller's thread (never throw).
constexpr std::string_view kInline = "-inline";
constexpr std::string_view kHop = "-hop";

/// "1x3x224x224;?": part of the tag.
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

/// Puts a value there that is made already.
template <class Key, class Value>
Status place(OnceMap<Key, Value>& map, const Key& key, Value value) {
  auto placed = map.get(key, [&] { return Result<Value>(std::move(value)); });
  return placed ? Status() : placed.error();
}

}  // namespace

Result<std::shared_ptr<VirtualProgram>> VirtualProgram::create(
    const device::Image& image, const device::PrepareOptions& options, std::size_t lanes,
    bool direct, std::shared_ptr<ConstantUsers> users) {
  std::shared_ptr<VirtualProgram> program(
      new VirtualProgram(image, options, lanes, std::move(users)));
  CORELANE_TRY(program->build(direct));
  return program;
}

/// Writes the program's members; after it they are constant, and any thread may read them without a
/// lock.
Status VirtualProgram::build(bool direct) {
  CORELANE_ASSIGN(const PatchedModel patched, patch());
  CORELANE_ASSIGN(inputs_, describe_inputs(patched.inputs, BoundTypes::kNumbers));
  CORELANE_TRY(check_elements(patched, inputs_));
  shapes_ = shapes_text(inputs_);
  CORELANE_ASSIGN(given_.bounds, index_bounds(as_byte_span(patched.bytes), patched.inputs));
  CORELANE_ASSIGN(given_.may_be_empty, inputs_that_may_be_empty(patched));
  if (!patched.custom_nodes.empty())
    operators_ = std::make_shared<HostOperators>(patched.custom_nodes, options_.host_operators);
  const bool large = lanes_ > 1 && patched.constant_bytes > options_.replicate_limit / (lanes_ - 1);
  std::optional<FirstCopy> first = import_first(patched, large);
  from_precompiled_ = first.has_value();
  if (!first) {
    // The macro is two statements.
    CORELANE_ASSIGN(first, compile_first(patched, large));
  }
  first_ = std::move(first->copy);
  ports_ = std::move(first->ports);
  runs_.never_throw = first->never_throws;
  shared_ = first->shared;
  runs_.may_end_early = shapes_are_fixed();
  CORELANE_TRY(place(copies_, key_for(1, 0), first_));
  if (first->blob) CORELANE_TRY(place(blob_, {}, std::move(first->blob)));
  if (direct) find_direct(patched);
  return {};
}

bool VirtualProgram::shapes_are_fixed() const {
  const auto fixed = [](const TensorDesc& desc) { return desc.shape.is_static(); };
  if (!std::ranges::all_of(inputs_, fixed) || !std::ranges::all_of(ports_.outputs, fixed))
    return false;
  if (runs_.never_throw) return true;  // Only networks of fixed shapes are.
  try {
    return all_static(*first_->model().get_runtime_model());
  } catch (const std::exception& e) {
    log::debug(kLogPart, "the engine does not show its graph, its shapes count as open: {}",
               e.what());
    return false;
  }
}

/// Only what DirectNetwork computes as the engine does: f32, without custom operators or layer
/// times.
void VirtualProgram::find_direct(const PatchedModel& patched) {
  if (operators_ || options_.profile_layers || options_.precision != device::Precision::kF32 ||
      patched.nodes > kDirectNodes || patched.constant_bytes > kDirectConstantBytes) {
    return;
  }
  for (const auto* descs : {&inputs_, &ports_.outputs}) {
    for (const TensorDesc& desc : *descs)
      if (desc.dtype != DType::kF32) return;
  }
  auto network = read_network(patched, nullptr);
  if (!network) return;  // The engine has compiled it, and runs it.
  try {
    direct_ = DirectForms::make(*network, inputs_);
  } catch (const std::exception& e) {
    log::debug(kLogPart, "looking for a direct network: {}", e.what());
  }
}

Result<PatchedModel> VirtualProgram::patch() const { return patch_onnx(image_, options_); }

Result<std::shared_ptr<ov::Model>> VirtualProgram::read(const PatchedModel& patched) {
  CORELANE_ASSIGN(auto network, read_network(patched, operators_));
  if (image_.immutable && image_.keep_alive != nullptr)
    in_place_.refer(*network, patched.image_constants, image_.keep_alive);
  return network;
}

/// How a network is read (network.cpp); a change of what is made of it is another number. 2: equal
/// values of TopK keep their order. 3: what moves values without elements is refused.
constexpr int kReadingRevision = 3;

/// All that the engine's compiled form depends on; a form with another tag is compiled again.
std::string VirtualProgram::tag() const {
  std::string exposed;
  for (const std::string& name : options_.exposed_values) exposed += name + '\n';
  std::string text = fmt::format("openvino-{}-{}-{}{}-{}-{}", engine_build(), engine_isa(),
                                 device::precision_name(options_.precision),
                                 options_.fast_math ? "-fast" : "", shapes_, kReadingRevision);
  if (!exposed.empty()) text += "-" + content_hash(as_byte_span(exposed));
  return text;
}

/// Where a form does not fit, the network is compiled instead.
std::optional<VirtualProgram::FirstCopy> VirtualProgram::import_first(const PatchedModel& patched,
                                                                      bool large) const {
  if (image_.precompiled.empty()) return std::nullopt;
  const std::string own = tag();
  FirstCopy first;
  first.never_throws = image_.precompiled_tag == own + std::string(kInline);
  if (operators_ || (!first.never_throws && image_.precompiled_tag != own + std::string(kHop))) {
    log::debug(kLogPart, "pre-compiled form '{}' does not fit '{}', compiling",
               image_.precompiled_tag, own);
    return std::nullopt;
  }
  first.shared = lanes_ > 1 && (large || !first.never_throws);
  auto blob = std::make_shared<Blob>();
  blob->bytes = image_.precompiled;
  blob->owner = image_.keep_alive;
  first.blob = std::move(blob);
  const auto import = [&]() -> Status {
    CORELANE_ASSIGN(first.copy, import_copy(first.blob, settings_for(1, first.shared), options_));
    CORELANE_ASSIGN(first.ports, describe(patched, first.copy->model()));
    return {};
  };
  if (const Status status = import(); !status.ok()) {
    log::debug(kLogPart, "pre-compiled form not taken, compiling: {}", status.to_string());
    return std::nullopt;
  }
  return first;
}

/// The first copy is made for inline runs where the network cannot throw, as far as that is known
/// before it is compiled.
Result<VirtualProgram::FirstCopy> VirtualProgram::compile_first(const PatchedModel& patched,
                                                                bool large) {
  CORELANE_ASSIGN(const auto network, read(patched));
  const Throwing throwing = operators_ ? Throwing::kMaybe : throwing_of(*network);
  // What may throw must not run inline with one thread, so it goes through stream threads.
  FirstCopy first;
  first.never_throws = throwing != Throwing::kMaybe;
  first.shared = lanes_ > 1 && (large || !first.never_throws);
  CORELANE_ASSIGN(first.copy, compile_copy(network, settings_for(1, first.shared), options_,
                                           patched.first_node, in_place_.names()));
  CORELANE_ASSIGN(first.ports, describe(patched, first.copy->model()));
  if (throwing != Throwing::kIfDynamic) return first;
  first.never_throws = all_static(*first.copy->model().get_runtime_model());
  if (first.never_throws || first.shared || lanes_ == 1) return first;
  // Made for inline runs, and found to need stream threads.
  first.shared = true;
  CORELANE_ASSIGN(first.copy, make_copy(*first.copy, settings_for(1, true)));
  return first;
}

/// The engine drops inputs that no node reads and may reorder the rest, so they are matched by
/// name.
Result<VirtualProgram::Ports> VirtualProgram::describe(const PatchedModel& patched,
                                                       const ov::CompiledModel& model) const {
  return engine_call("describing the network", Code::kInternal, [&]() -> Result<Ports> {
    std::unordered_multimap<std::string, int> names;
    const auto& engine_inputs = model.inputs();
    for (std::size_t i = 0; i < engine_inputs.size(); ++i)
      names.emplace(engine_inputs[i].get_node()->get_friendly_name(), static_cast<int>(i));
    Ports ports;
    for (const TensorDesc& input : inputs_) {
      const auto port = names.find(input.name);
      ports.engine_inputs.push_back(port == names.end() ? -1 : port->second);
      if (port != names.end()) names.erase(port);
    }
    if (!names.empty())
      return error(Code::kUnsupportedModel, "the engine takes an input '{}' that the network lacks",
                   names.begin()->first);
    if (model.outputs().size() != patched.outputs.size())
      return error(Code::kUnsupportedModel, "the engine made {} outputs of the network's {}",
                   model.outputs().size(), patched.outputs.size());
    for (std::size_t i = 0; i < patched.outputs.size(); ++i) {
      const auto& output = model.outputs()[i];
      TensorDesc desc;
      desc.name = patched.outputs[i].name;
      // The network's own where the engine has a type that Corelane gets from another engine.
      DType dtype = dtype_of(output.get_element_type());
      if (dtype == DType::kUndefined) dtype = dtype_from_onnx(patched.outputs[i].elem_type);
      CORELANE_ASSIGN(desc.dtype,
                      usable_dtype(patched.outputs[i], "output", dtype, BoundTypes::kNumbers));
      desc.shape = output.get_partial_shape().rank().is_dynamic() && patched.outputs[i].has_shape
                       ? patched.outputs[i].shape
                       : shape_of(output.get_partial_shape());
      ports.outputs.push_back(std::move(desc));
    }
    return ports;
  });
}

/// A wide job gets threads, a shared copy streams: one job at a time in each stream.
CopySettings VirtualProgram::settings_for(std::size_t width, bool shared) const {
  const std::size_t cpus = whole_cpus();
  if (width > 1 && cpus > 1) return {.streams = 1, .threads = std::min(width, cpus)};
  const std::size_t streams = shared ? std::min(lanes_, cpus) : 1;
  return {.streams = streams, .threads = streams};
}

/// Widths beyond the CPUs share a copy: more threads would only take turns.
VirtualProgram::Key VirtualProgram::key_for(std::size_t width, std::size_t core) const {
  const std::size_t threads = std::min(width, whole_cpus());
  if (threads > 1) return {threads, 0};
  return {1, shared_ ? 0 : core};
}

Result<VirtualProgram::CopyPtr> VirtualProgram::copy_for(std::size_t width, std::size_t core) {
  const Key key = key_for(width, core);
  const auto make = [&] { return make_copy(*first_, settings_for(width, shared_)); };
  auto copy = copies_.get(key, make);
  if (!copy) return copy;
  const bool hangs = !(*copy)->abandoned().wait(kHung);
  if (!hangs && !(*copy)->is_spoilt()) return copy;
  log::warn(
      kLogPart, "a run of network '{}' that {}; it is compiled again", image_.name,
      hangs ? "was abandoned has not come back" : "failed has left the engine's shapes wrong");
  copies_.forget(key, *copy);
  {
    const MutexLock lock(left_mutex_);
    std::erase_if(left_, [](const auto& left) { return left.expired(); });
    left_.push_back(*copy);
  }
  return copies_.get(key, make);
}

/// The blob is exported once, at the first need. Custom operators cannot be stored in one.
Result<VirtualProgram::CopyPtr> VirtualProgram::make_copy(const CompiledCopy& first,
                                                          const CopySettings& settings) {
  // The engine reads constants from the image where they lie.
  if (image_.intact) CORELANE_TRY(image_.intact());
  if (!operators_) {
    auto copy = blob_.get({}, [&] { return export_blob(first); }).and_then([&](const auto& blob) {
      return import_copy(blob, settings, options_);
    });
    if (copy) return copy;
    log::debug(kLogPart, "{}; compiling again", copy.error().to_string());
  }
  CORELANE_ASSIGN(const PatchedModel patched, patch());
  CORELANE_ASSIGN(const auto network, read_network(patched, operators_));
  return compile_copy(network, settings, options_, patched.first_node, {});
}

/// A direct request makes the engine's only for shapes that have no direct form.
Result<std::unique_ptr<device::LaneRequest>> VirtualProgram::new_request(std::size_t width,
                                                                         std::size_t core) {
  if (width == 0 || width > lanes_ || core >= lanes_)
    return error(Code::kInvalidArgument, "width {} from core {}: this device has {} cores", width,
                 core, lanes_);
  if (!direct_) return engine_request(width, core);
  return make_direct_request(shared_from_this(), direct_,
                             [this, width, core] { return engine_request(width, core); });
}

/// Shapes that no run has had yet are checked with a second network, which is read without its
/// large constants unless it is there. If there is no memory for it, the run fails, and the next
/// run tries again.
Status VirtualProgram::check_shapes(const std::vector<Shape>& shapes) {
  using Made = Result<std::shared_ptr<ShapeCheck>>;
  const auto make = [&]() -> Made {
    CORELANE_ASSIGN(const PatchedModel patched, patch());
    CORELANE_ASSIGN(const auto network, read_network(patched, operators_));
    return std::make_shared<ShapeCheck>(network, inputs_);
  };
  const auto make_once = [&]() -> Made {
    Made made = engine_call("reading the network for its shapes", Code::kInternal, make);
    if (made || made.error().code() == Code::kOutOfMemory) return made;
    // The engine has compiled this network; where it refuses it now, its own checks decide.
    log::warn(kLogPart, "shapes are not checked: {}", made.error().to_string());
    return std::shared_ptr<ShapeCheck>();
  };
  const auto good = good_shapes_.get(dims_of(shapes), [&]() -> Result<std::monostate> {
    CORELANE_ASSIGN(const auto check, shape_check_.get({}, make_once));
    if (check != nullptr) CORELANE_TRY(check->check(shapes));
    return std::monostate();
  });
  return good ? Status() : good.error();
}

void VirtualProgram::end_shape_check() {
  bool ended = false;
  for (const auto& check : shape_check_.values()) {
    if (check == nullptr) continue;
    shape_check_.forget({}, check);
    ended = true;
  }
  if (ended) trim_heap();
}

/// Replicated programs need a copy for each core that may run, all others one.
Status VirtualProgram::reserve(std::size_t width, std::size_t requests) {
  const bool per_core = key_for(width, 1).second == 1;
  const std::size_t copies =
      per_core ? std::min(requests, lanes_) : std::min<std::size_t>(requests, 1);
  for (std::size_t core = 0; core < copies; ++core)
    if (auto copy = copy_for(width, core); !copy) return std::move(copy).error();
  return {};
}

/// What is there by now: copies that are being made are counted when they are done.
device::MemoryFigures VirtualProgram::memory() const {
  device::MemoryFigures figures;
  std::size_t by_runs = run_bytes_;
  figures.weights = in_place_.share();
  std::vector<CopyPtr> copies = copies_.values();
  {
    const MutexLock lock(left_mutex_);
    for (const auto& left : left_)
      if (CopyPtr copy = left.lock()) copies.push_back(std::move(copy));
  }
  for (const CopyPtr& copy : copies) {
    const CompiledCopy::Figures own = copy->figures();
    figures.weights += own.weights;
    figures.internal += own.internal;
    figures.code += own.code;
    // The first runs made what the copy's figures have computed already.
    by_runs -= std::min(by_runs, own.later);
  }
  figures.internal += by_runs;
  for (const auto& blob : blob_.values()) figures.weights += blob->heap_bytes;
  return figures;
}

/// From the blob where there is one; else exported without being kept.
Result<device::Executable::Precompiled> VirtualProgram::export_precompiled() const {
  if (operators_)
    return error(Code::kUnsupported,
                 "a network with custom operators has no pre-compiled form; the engine cannot "
                 "store them");
  const auto made = blob_.values();
  auto blob =
      made.empty() ? export_blob(*first_) : Result<std::shared_ptr<const Blob>>(made.front());
  return blob.map([this](const auto& form) {
    return device::Executable::Precompiled{{form->bytes.begin(), form->bytes.end()},
                                           tag() + std::string(runs_.never_throw ? kInline : kHop)};
  });
}

}  // namespace corelane::drivers::virtual_npu
