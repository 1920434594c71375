#include "drivers/virtual/ort/ort_program.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "base/process/cpus.h"
#include "base/process/heap.h"
#include "corelane/device/soonest_engine.h"
#include "corelane/tensor/value_type.h"
#include "drivers/virtual/common/graph_tensors.h"
#include "drivers/virtual/common/heap_growth.h"
#include "drivers/virtual/ort/ort_optimizers.h"
#include "drivers/virtual/ort/ort_outputs.h"
#include "drivers/virtual/ort/ort_quotients.h"
#include "drivers/virtual/ort/ort_tensor.h"
#include "drivers/virtual/ort/ort_versions.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

constexpr std::string_view kReading = "ONNX Runtime cannot take the network";
/// The name of the constants' file in the network's external data.
constexpr const char* kConstants = "corelane:constants";
/// Two sessions may hold their own form of the constants for a while.
constexpr std::size_t kMostPlainConstants = std::size_t{64} << 20;
/// Constants from which the optimiser takes longer to lay them out for convolutions of pictures
/// than the first run of a small picture gains by it.
constexpr std::size_t kHeavyConstants = std::size_t{2} << 20;
/// Smaller constants are not worth a value each.
constexpr std::size_t kSharedFrom = std::size_t{64} << 10;
/// The types of weights that kernels pack.
constexpr DType kPacked[] = {DType::kF32, DType::kF16, DType::kI8, DType::kU8};
/// A first run of fewer steps for each node of the network loses less without the optimiser than
/// the load gains: half of what was measured, since layouts gain up to twice as much.
constexpr std::uint64_t kStepsPerNode = 4'000'000;
/// Elements of a small picture: 256 x 256 of three channels.
constexpr std::int64_t kSmallPicture = std::int64_t{3} << 16;
/// Elements of a short sound, of which a network may make pictures of its own: 4 s of 16 kHz.
constexpr std::int64_t kShortSound = std::int64_t{1} << 16;
/// Their generators belong to the session: an optimised one would repeat what the plain one gave.
constexpr std::string_view kRandom[] = {"Bernoulli",        "Multinomial",   "RandomNormal",
                                        "RandomNormalLike", "RandomUniform", "RandomUniformLike"};

Status set_entry(const OrtLibrary& library, OrtSessionOptions* options, const char* key,
                 const char* value) {
  return library.call<entry::AddSessionConfigEntry>(key, Code::kInternal, options, key, value);
}

/// The engine's plan lets values share memory: it compares each one with all that are free, which
/// takes up to two thirds of a load without the optimiser (15 of 22 ms). It leaves that out for
/// sessions that run nodes side by side, as it would this one, had its pool more threads than the
/// caller's.
Status leave_out_sharing(const OrtLibrary& library, OrtSessionOptions* options) {
  constexpr std::string_view kWhat = "the engine's plan of memory";
  CORELANE_TRY(library.call<entry::DisablePerSessionThreads>(kWhat, Code::kInternal, options));
  return library.call<entry::SetSessionExecutionMode>(kWhat, Code::kInternal, options,
                                                      ORT_PARALLEL);
}

/// Where the threads of a job that takes every CPU of the process belong, the caller's apart: "2;3"
/// are the second and the third CPU of the machine. A thread that waits in a loop may be put on the
/// CPU of another one when it is woken up, and stays there for some runs. Empty for fewer threads:
/// several such jobs may run side by side.
std::string cpus_of_threads(std::size_t threads) {
  std::string text;
  if (threads < 2) return text;
  const std::vector<std::size_t> cpus = affine_cpus();
  if (threads != cpus.size()) return text;
  for (std::size_t i = 1; i < threads; ++i)
    text += (i > 1 ? ";" : "") + std::to_string(cpus[i] + 1);
  return text;
}

/// `threads`: that compute one job, the caller's among them.
Result<OwnedSessionOptions> session_options(const OrtLibrary& library, const device::Image& image,
                                            const PatchedModel& patched, std::size_t threads,
                                            bool plain) {
  constexpr std::string_view kWhat = "the engine's options";
  CORELANE_ASSIGN(auto options, (make_owned<OwnedSessionOptions, entry::CreateSessionOptions>(
                                    library, kWhat, Code::kEngineFailed)));
  OrtSessionOptions* const raw = options.get();
  CORELANE_TRY(library.call<entry::SetSessionGraphOptimizationLevel>(
      kWhat, Code::kInternal, raw, plain ? ORT_DISABLE_ALL : ORT_ENABLE_ALL));
  CORELANE_TRY(library.call<entry::SetIntraOpNumThreads>(kWhat, Code::kInternal, raw,
                                                         static_cast<int>(threads)));
  CORELANE_TRY(library.call<entry::SetInterOpNumThreads>(kWhat, Code::kInternal, raw, 1));
  CORELANE_TRY(library.call<entry::SetSessionLogSeverityLevel>(kWhat, Code::kInternal, raw,
                                                               int{ORT_LOGGING_LEVEL_WARNING}));
  // The job has its threads' cores until it ends: they wait for work in a loop, since waking them
  // up takes longer than most nodes of small networks. After it they would take CPUs from other
  // cores.
  CORELANE_TRY(set_entry(library, raw, "session.intra_op.allow_spinning", threads > 1 ? "1" : "0"));
  CORELANE_TRY(set_entry(library, raw, "session.force_spinning_stop", "1"));
  if (const std::string cpus = cpus_of_threads(threads); !cpus.empty())
    CORELANE_TRY(set_entry(library, raw, "session.intra_op_thread_affinities", cpus.c_str()));
  CORELANE_TRY(set_entry(library, raw, "optimization.disable_specified_optimizers",
                         needless_optimizers(patched.first_node).c_str()));
  // Constants do not lie in the arena of the runs, which grows in powers of two.
  CORELANE_TRY(set_entry(library, raw, "session.use_device_allocator_for_initializers", "1"));
  if (image.constants.empty()) return options;
  // Without this it copies them. The image keeps them for as long as there are sessions.
  CORELANE_TRY(
      set_entry(library, raw, "session.use_external_initializer_file_buffers_directly", "1"));
  const char* const name = kConstants;
  // The interface wants bytes that it could write; it only reads them.
  char* const bytes = const_cast<char*>(reinterpret_cast<const char*>(image.constants.data()));
  const std::size_t size = image.constants.size();
  CORELANE_TRY(library.call<entry::AddExternalInitializersFromFilesInMemory>(
      kWhat, Code::kInternal, raw, &name, &bytes, &size, std::size_t{1}));
  return options;
}

bool is_picture(const TensorDesc& desc) { return desc.shape.rank() == 4; }

/// Elements for one item of a batch that is open, or `most + 1` where there are more. Open
/// dimensions count as 1.
std::int64_t elements_up_to(const TensorDesc& desc, std::int64_t most) {
  std::int64_t elements = 1;
  for (const std::int64_t dim : desc.shape.dims())
    if (dim > 0) elements = std::min(elements * std::min(dim, most + 1), most + 1);
  return elements;
}

/// At most `most` elements. One dimension beside the batch may be open, as the width of a line of
/// text is.
bool is_small(const TensorDesc& desc, std::int64_t most) {
  const std::int64_t open = std::ranges::count(desc.shape.dims(), Shape::kOpen);
  const bool open_batch = desc.shape.rank() > 0 && desc.shape[0] == Shape::kOpen;
  return open <= (open_batch ? 2 : 1) && elements_up_to(desc, most) <= most;
}

/// Type and shape of an output as the engine found them, with no dimensions where it knows no rank.
Result<TensorForm> output_form(const OrtLibrary& library, OrtSession* session, std::size_t index) {
  constexpr std::string_view kWhat = "describing the network";
  CORELANE_ASSIGN(const auto info, (make_owned<OwnedTypeInfo, entry::SessionGetOutputTypeInfo>(
                                       library, kWhat, Code::kInternal, session, index)));
  ONNXType type = ONNX_TYPE_UNKNOWN;
  CORELANE_TRY(
      library.call<entry::GetOnnxTypeFromTypeInfo>(kWhat, Code::kInternal, info.get(), &type));
  if (type != ONNX_TYPE_TENSOR)
    return error(Code::kUnsupportedModel, "output {} is not a tensor; only tensors can be bound",
                 index);
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  CORELANE_TRY(
      library.call<entry::CastTypeInfoToTensorInfo>(kWhat, Code::kInternal, info.get(), &tensor));
  return form_of(library, kWhat, Code::kInternal, tensor);
}

}  // namespace

Result<std::shared_ptr<OrtProgram>> OrtProgram::create(const OrtLibrary& library,
                                                       const device::Image& image,
                                                       const device::PrepareOptions& options,
                                                       std::size_t lanes) {
  device::Image own = image;
  // The network as it was given: this engine needs no other form.
  if (!own.given.empty()) own.bytes = own.given;
  own.given = {};
  std::shared_ptr<OrtProgram> program(new OrtProgram(library, std::move(own), options, lanes));
  CORELANE_TRY(program->build());
  return program;
}

Result<PatchedModel> OrtProgram::read(ZippedOutputs& zipped) const {
  CORELANE_ASSIGN(PatchedModel patched, patch_onnx(image_, options_, PatchFor::kOnnxRuntime));
  CORELANE_TRY(fit_versions(patched));
  CORELANE_TRY(guard_quotients(patched));
  CORELANE_TRY(drop_output_shapes(patched));
  CORELANE_ASSIGN(zipped, unzip_outputs(patched));
  return patched;
}

/// Sessions share the packed form of those constants alone that are handed to them as values
/// (PrepackConstantInitializedTensors() of the engine): without this each session packs its own.
Status OrtProgram::share_constants(const PatchedModel& patched) {
  // The engine finds a value by its name in every graph, and a graph within may have a constant of
  // its own that hides this one, or one that the optimiser makes of a node.
  if (patched.has_inner_graphs) return {};
  std::map<std::string_view, int> times;  // Of two with one name the engine takes the last.
  for (const ImageConstant& constant : patched.image_constants) ++times[constant.name];
  for (const ImageConstant& constant : patched.image_constants) {
    if (!constant.top || times[constant.name] > 1 || constant.bytes.size() < kSharedFrom ||
        std::ranges::find(kPacked, constant.dtype) == std::end(kPacked))
      continue;
    // The interface wants bytes that it could write; it only reads them.
    void* const bytes = const_cast<std::byte*>(constant.bytes.data());
    CORELANE_ASSIGN(OwnedValue value,
                    wrap_tensor(library_, constant.name, constant.dtype, bytes, constant.shape));
    shared_.emplace_back(constant.name, std::move(value));
  }
  return {};
}

Status OrtProgram::build() {
  CORELANE_ASSIGN(const PatchedModel patched, read(zipped_));
  CORELANE_ASSIGN(inputs_, describe_inputs(patched.inputs, BoundTypes::kOpaque));
  for (const ImageConstant& constant : patched.image_constants)
    constant_bytes_ += constant.bytes.size();
  constexpr std::string_view kWhat = "the engine's packed weights";
  CORELANE_ASSIGN(packed_, (make_owned<OwnedPackedWeights, entry::CreatePrepackedWeightsContainer>(
                               library_, kWhat, Code::kEngineFailed)));
  CORELANE_TRY(share_constants(patched));
  nodes_ = patched.nodes;
  // The macro is two statements.
  CORELANE_ASSIGN(empty_bounds_, ort::empty_bounds(patched));
  if (!patched.custom_nodes.empty()) {
    // The macro is two statements.
    CORELANE_ASSIGN(operators_, OrtHostOperators::make(library_, patched.custom_nodes,
                                                       options_.host_operators));
  }
  if (!begins_plain(patched)) return build_optimised(patched);
  CORELANE_ASSIGN(CopyPtr first, make_copy(patched, 1, true));
  CORELANE_TRY(describe_outputs(patched, first->session.get()));
  if (optimising_tells_more()) return build_optimised(patched);
  later_ = std::make_unique<OrtLaterCopy>([this]() -> Result<OrtLaterCopy::Replaced> {
    const OrtSilence silence;
    CORELANE_ASSIGN(const CopyPtr copy, optimised_copy(1));
    const bool is_large = memory().total() >= kWorthATrim;
    CopyPtr gone;  // Its session may end here, which takes a while.
    const MutexLock lock(mutex_);
    gone.swap(plain_);
    return OrtLaterCopy::Replaced{gone, is_large};
  });
  const MutexLock lock(mutex_);
  plain_ = std::move(first);
  return {};
}

/// The engine infers some shapes from constants that its optimiser has folded. An output of which
/// it knows no dimension comes from an operator whose shapes it never infers.
bool OrtProgram::optimising_tells_more() const {
  const auto is_all_open = [](const TensorDesc& desc) {
    return std::ranges::all_of(desc.shape.dims(),
                               [](std::int64_t dim) { return dim == Shape::kOpen; });
  };
  const auto is_inferred = [&](const TensorDesc& known, const TensorDesc& declared) {
    return !is_all_open(known) || is_all_open(declared);
  };
  return !knows_as_much(outputs_, image_.outputs, inputs_) &&
         std::ranges::equal(outputs_, image_.outputs, is_inferred);
}

Status OrtProgram::build_optimised(const PatchedModel& patched) {
  CORELANE_ASSIGN(const CopyPtr first,
                  copies_.get(1, [&] { return make_copy(patched, 1, false); }));
  return describe_outputs(patched, first->session.get());
}

Status OrtProgram::describe_output(const PatchedModel& patched, OrtSession* session,
                                   std::size_t index) {
  const GraphValue& declared = patched.outputs[index];
  if (ValueType type = border_type(declared.type, false); !type.empty()) {
    outputs_.push_back(flat_desc(declared.name, std::move(type)));
    return {};
  }
  CORELANE_ASSIGN(TensorForm form, output_form(library_, session, index));
  TensorDesc desc;
  desc.name = declared.name;
  CORELANE_ASSIGN(desc.dtype, usable_dtype(declared, "output", form.dtype, BoundTypes::kOpaque));
  // The engine says "no dimensions" of an output whose rank it does not know, too.
  const bool is_number =
      declared.has_shape && declared.shape.rank() == 0 && has_fixed_inputs(patched);
  desc.any_rank = form.shape.rank() == 0 && !is_number;
  desc.shape = desc.any_rank ? shape_without_rank(index) : std::move(form.shape);
  outputs_.push_back(std::move(desc));
  return {};
}

/// Where sizes come with a run anyway, users are told what the network declares. A fixed shape that
/// is only declared could be another one in a run.
Shape OrtProgram::shape_without_rank(std::size_t index) const {
  const bool is_open = index < image_.outputs.size() && image_.outputs[index].shape.rank() > 0 &&
                       !image_.outputs[index].shape.is_static();
  return is_open ? image_.outputs[index].shape : Shape{Shape::kOpen};
}

Status OrtProgram::describe_outputs(const PatchedModel& patched, OrtSession* session) {
  constexpr std::string_view kWhat = "describing the network";
  std::size_t count = 0;
  CORELANE_TRY(
      library_.call<entry::SessionGetOutputCount>(kWhat, Code::kInternal, session, &count));
  if (count != patched.outputs.size())
    return error(Code::kUnsupportedModel, "the engine made {} outputs of the network's {}", count,
                 patched.outputs.size());
  outputs_.clear();
  output_names_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    CORELANE_TRY(describe_output(patched, session, i));
    char* name = nullptr;
    CORELANE_TRY(library_.call<entry::SessionGetOutputName>(kWhat, Code::kInternal, session, i,
                                                            library_.allocator(), &name));
    output_names_.emplace_back(name);
    CORELANE_TRY(library_.call<entry::AllocatorFree>(kWhat, Code::kInternal, library_.allocator(),
                                                     static_cast<void*>(name)));
  }
  if (!knows_as_much(outputs_, image_.outputs, inputs_)) take_inferred_shapes();
  return {};
}

/// The engine does not infer some sizes that follow from the inputs, or those of operators that it
/// has not folded.
void OrtProgram::take_inferred_shapes() {
  if (!image_.infer_outputs) return;
  const auto inferred = image_.infer_outputs();
  for (std::size_t i = 0; i < std::min(inferred.size(), outputs_.size()); ++i) {
    TensorDesc& output = outputs_[i];
    if (!inferred[i] || !output.value.empty()) continue;
    if (!output.any_rank && !output.shape.accepts(*inferred[i])) continue;
    output.shape = *inferred[i];
    output.any_rank = false;
  }
}

Result<OwnedSessionOptions> OrtProgram::options_for(const PatchedModel& patched,
                                                    std::size_t threads, bool plain) const {
  CORELANE_ASSIGN(auto options, session_options(library_, image_, patched, threads, plain));
  if (operators_ != nullptr) CORELANE_TRY(operators_->add_to(options.get()));
  for (const auto& [name, value] : shared_)
    CORELANE_TRY(library_.call<entry::AddInitializer>("the constants", Code::kInternal,
                                                      options.get(), name.c_str(), value.get()));
  return options;
}

Result<OwnedSession> OrtProgram::make_session(const PatchedModel& patched,
                                              const OrtSessionOptions* options, bool alone) const {
  const auto* const bytes = static_cast<const void*>(patched.bytes.data());
  if (alone)
    return make_owned<OwnedSession, entry::CreateSessionFromArray>(
        library_, kReading, Code::kUnsupportedModel, library_.environment(), bytes,
        patched.bytes.size(), options);
  return make_owned<OwnedSession, entry::CreateSessionFromArrayWithPrepackedWeightsContainer>(
      library_, kReading, Code::kUnsupportedModel, library_.environment(), bytes,
      patched.bytes.size(), options, packed_.get());
}

Result<OrtProgram::CopyPtr> OrtProgram::make_copy(const PatchedModel& patched, std::size_t threads,
                                                  bool plain) {
  const HeapGrowth growth;
  CORELANE_ASSIGN(auto options, options_for(patched, threads, plain));
  if (plain) CORELANE_TRY(leave_out_sharing(library_, options.get()));
  auto session = make_session(patched, options.get(), plain);
  if (!session && plain) {
    // The environment has no pools where the process had opened this library before us.
    CORELANE_ASSIGN(options, options_for(patched, threads, plain));
    session = make_session(patched, options.get(), plain);
  }
  if (!session) return error(session.error());
  return std::make_shared<const OrtCopy>(OrtCopy{std::move(*session), growth.bytes(), plain});
}

bool OrtProgram::begins_plain(const PatchedModel& patched) const {
  if (options_.engine != device::kSoonestEngine) return false;
  const auto has = [&](std::string_view op) { return patched.first_node.contains(op); };
  if (options_.profile_layers || operators_ != nullptr || constant_bytes_ > kMostPlainConstants ||
      std::ranges::any_of(kRandom, has) || is_fused_to_integers(patched))
    return false;
  if (!has("Conv")) return true;
  // The optimiser takes some 40 us for each node. It lays values out for convolutions, without
  // which a million steps take some 5 us longer.
  if (image_.steps && *image_.steps <= kStepsPerNode * patched.nodes) return true;
  if (!patched.has_planes && std::ranges::none_of(inputs_, is_picture))
    return std::ranges::all_of(inputs_, [](const TensorDesc& desc) {
      return elements_up_to(desc, kShortSound) <= kShortSound;
    });
  const auto short_sound = [](const TensorDesc& desc) {
    return is_picture(desc) || is_small(desc, kShortSound);
  };
  const auto small_picture = [](const TensorDesc& desc) {
    return !is_picture(desc) || is_small(desc, kSmallPicture);
  };
  return std::ranges::all_of(inputs_, small_picture) &&
         (constant_bytes_ >= kHeavyConstants || std::ranges::all_of(inputs_, short_sound));
}

OrtProgram::CopyPtr OrtProgram::plain_copy() const {
  const MutexLock lock(mutex_);
  return plain_;
}

std::shared_ptr<const OrtCopy> OrtProgram::better_copy(const OrtCopy& used) {
  if (later_ == nullptr || !used.plain) return nullptr;
  later_->note_run();
  if (!later_->done()) return nullptr;
  auto copy = optimised_copy(1);  // It is there.
  return copy ? std::move(*copy) : nullptr;
}

Result<std::unique_ptr<OrtProfile>> OrtProgram::new_profile(std::size_t width) const {
  ZippedOutputs same;
  CORELANE_ASSIGN(const PatchedModel patched, read(same));
  CORELANE_ASSIGN(auto options, options_for(patched, threads_for(width), false));
  return OrtProfile::make(library_, std::move(options), [&](const OrtSessionOptions* with) {
    return make_session(patched, with, false);
  });
}

Result<std::vector<device::LayerTime>> OrtProgram::layer_times(OrtProfile& profile) const {
  CORELANE_ASSIGN(auto layers, profile.times());
  if (operators_ != nullptr)
    for (device::LayerTime& layer : layers) operators_->give_back_type(layer.type);
  return layers;
}

/// More threads than CPUs would only take turns.
std::size_t OrtProgram::threads_for(std::size_t width) const {
  return std::min(width, whole_cpus());
}

Result<OrtProgram::CopyPtr> OrtProgram::optimised_copy(std::size_t threads) {
  return copies_.get(threads, [&]() -> Result<CopyPtr> {
    ZippedOutputs same;
    CORELANE_ASSIGN(const PatchedModel patched, read(same));
    return make_copy(patched, threads, false);
  });
}

/// The plain one while it is there: a request may be made within the time limit of a run, and goes
/// over to the optimised one later.
Result<OrtProgram::CopyPtr> OrtProgram::copy_for(std::size_t width) {
  const std::size_t threads = threads_for(width);
  if (threads == 1)
    if (CopyPtr plain = plain_copy()) return plain;
  return optimised_copy(threads);
}

Result<std::unique_ptr<device::LaneRequest>> OrtProgram::new_request(std::size_t width,
                                                                     std::size_t core) {
  if (width == 0 || width > lanes_ || core >= lanes_)
    return error(Code::kInvalidArgument, "width {} from core {}: this device has {} cores", width,
                 core, lanes_);
  CORELANE_ASSIGN(CopyPtr copy, copy_for(width));
  return make_ort_request(shared_from_this(), std::move(copy), width);
}

/// Outside of any run, so that what is made next has the optimised copy that is under way: engines
/// are timed with it.
Status OrtProgram::reserve(std::size_t width, std::size_t /*requests*/) {
  if (later_ != nullptr) later_->wait();
  const auto copy = copy_for(width);
  return copy ? Status() : copy.error();
}

/// The engine does not report what it holds: constants in the image are known, the rest is what the
/// heap grew by.
device::MemoryFigures OrtProgram::memory() const {
  device::MemoryFigures figures;
  figures.weights = constant_bytes_;
  for (const CopyPtr& copy : copies_.values()) figures.code += copy->heap_growth;
  if (const CopyPtr plain = plain_copy()) figures.code += plain->heap_growth;
  figures.internal = run_bytes_;
  return figures;
}

Result<device::Executable::Precompiled> OrtProgram::export_precompiled() const {
  return error(
      Code::kUnsupported,
      "ONNX Runtime has no pre-compiled form of a network; it is prepared from the network "
      "each time");
}

}  // namespace corelane::drivers::virtual_npu::ort
