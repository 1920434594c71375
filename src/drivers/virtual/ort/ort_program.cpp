#include "drivers/virtual/ort/ort_program.h"

#include <algorithm>
#include <utility>

#include "drivers/virtual/common/cpus.h"
#include "drivers/virtual/common/graph_tensors.h"
#include "drivers/virtual/common/heap_growth.h"
#include "drivers/virtual/ort/ort_tensor.h"
#include "drivers/virtual/ort/ort_versions.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

constexpr std::string_view kReading = "ONNX Runtime cannot take the network";
/// The name of the constants' file in the network's external data.
constexpr const char* kConstants = "corelane:constants";

Status set_entry(const OrtLibrary& library, OrtSessionOptions* options, const char* key,
                 const char* value) {
  return library.call<entry::AddSessionConfigEntry>(key, Code::kInternal, options, key, value);
}

/// `threads`: that compute one job, the caller's among them.
Result<OwnedSessionOptions> session_options(const OrtLibrary& library, const device::Image& image,
                                            std::size_t threads) {
  constexpr std::string_view kWhat = "the engine's options";
  CORELANE_ASSIGN(auto options, (make_owned<OwnedSessionOptions, entry::CreateSessionOptions>(
                                    library, kWhat, Code::kEngineFailed)));
  OrtSessionOptions* const raw = options.get();
  CORELANE_TRY(library.call<entry::SetSessionGraphOptimizationLevel>(kWhat, Code::kInternal, raw,
                                                                     ORT_ENABLE_ALL));
  CORELANE_TRY(library.call<entry::SetIntraOpNumThreads>(kWhat, Code::kInternal, raw,
                                                         static_cast<int>(threads)));
  CORELANE_TRY(library.call<entry::SetInterOpNumThreads>(kWhat, Code::kInternal, raw, 1));
  CORELANE_TRY(library.call<entry::SetSessionLogSeverityLevel>(kWhat, Code::kInternal, raw,
                                                               int{ORT_LOGGING_LEVEL_WARNING}));
  // Threads that wait for work would take CPUs from the other cores.
  CORELANE_TRY(set_entry(library, raw, "session.intra_op.allow_spinning", "0"));
  // Constants do not lie in the arena of the runs, which grows in powers of two.
  CORELANE_TRY(set_entry(library, raw, "session.use_device_allocator_for_initializers", "1"));
  if (image.constants.empty()) return options;
  const char* const name = kConstants;
  // The interface wants bytes that it could write; it only reads them.
  char* const bytes = const_cast<char*>(reinterpret_cast<const char*>(image.constants.data()));
  const std::size_t size = image.constants.size();
  CORELANE_TRY(library.call<entry::AddExternalInitializersFromFilesInMemory>(
      kWhat, Code::kInternal, raw, &name, &bytes, &size, std::size_t{1}));
  return options;
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
  CORELANE_ASSIGN(PatchedModel patched, patch_onnx(image_, options_, ConstantPlace::kSegment));
  CORELANE_TRY(fit_versions(patched));
  CORELANE_ASSIGN(zipped, unzip_outputs(patched));
  return patched;
}

Status OrtProgram::build() {
  CORELANE_ASSIGN(const PatchedModel patched, read(zipped_));
  CORELANE_ASSIGN(inputs_, describe_inputs(patched.inputs, BoundTypes::kOpaque));
  for (const ImageConstant& constant : patched.image_constants)
    constant_bytes_ += constant.bytes.size();
  constexpr std::string_view kWhat = "the engine's packed weights";
  CORELANE_ASSIGN(packed_, (make_owned<OwnedPackedWeights, entry::CreatePrepackedWeightsContainer>(
                               library_, kWhat, Code::kEngineFailed)));
  CORELANE_ASSIGN(const CopyPtr first, copies_.get(1, [&] { return make_copy(patched, 1); }));
  return describe_outputs(patched, first->session.get());
}

Status OrtProgram::describe_output(const GraphValue& declared, OrtSession* session,
                                   std::size_t index) {
  if (ValueType type = border_type(declared.type, false); !type.empty()) {
    outputs_.push_back(flat_desc(declared.name, std::move(type)));
    return {};
  }
  CORELANE_ASSIGN(TensorForm form, output_form(library_, session, index));
  TensorDesc desc;
  desc.name = declared.name;
  CORELANE_ASSIGN(desc.dtype, usable_dtype(declared, "output", form.dtype, BoundTypes::kOpaque));
  // The engine says "no dimensions" of an output without a rank, too.
  desc.any_rank = form.shape.rank() == 0 && !declared.has_shape;
  desc.shape = desc.any_rank ? Shape{Shape::kOpen} : std::move(form.shape);
  outputs_.push_back(std::move(desc));
  return {};
}

Status OrtProgram::describe_outputs(const PatchedModel& patched, OrtSession* session) {
  constexpr std::string_view kWhat = "describing the network";
  std::size_t count = 0;
  CORELANE_TRY(
      library_.call<entry::SessionGetOutputCount>(kWhat, Code::kInternal, session, &count));
  if (count != patched.outputs.size())
    return error(Code::kUnsupportedModel, "the engine made {} outputs of the network's {}", count,
                 patched.outputs.size());
  for (std::size_t i = 0; i < count; ++i) {
    CORELANE_TRY(describe_output(patched.outputs[i], session, i));
    char* name = nullptr;
    CORELANE_TRY(library_.call<entry::SessionGetOutputName>(kWhat, Code::kInternal, session, i,
                                                            library_.allocator(), &name));
    output_names_.emplace_back(name);
    CORELANE_TRY(library_.call<entry::AllocatorFree>(kWhat, Code::kInternal, library_.allocator(),
                                                     static_cast<void*>(name)));
  }
  return {};
}

Result<OrtProgram::CopyPtr> OrtProgram::make_copy(const PatchedModel& patched,
                                                  std::size_t threads) {
  const HeapGrowth growth;
  CORELANE_ASSIGN(const auto options, session_options(library_, image_, threads));
  const auto* const bytes = static_cast<const void*>(patched.bytes.data());
  CORELANE_ASSIGN(
      auto session,
      (make_owned<OwnedSession, entry::CreateSessionFromArrayWithPrepackedWeightsContainer>(
          library_, kReading, Code::kUnsupportedModel, library_.environment(), bytes,
          patched.bytes.size(), options.get(), packed_.get())));
  return std::make_shared<const OrtCopy>(OrtCopy{std::move(session), growth.bytes()});
}

/// More threads than CPUs would only take turns.
std::size_t OrtProgram::threads_for(std::size_t width) const {
  return std::min(width, usable_cpus());
}

Result<OrtProgram::CopyPtr> OrtProgram::copy_for(std::size_t width) {
  const std::size_t threads = threads_for(width);
  return copies_.get(threads, [&]() -> Result<CopyPtr> {
    ZippedOutputs same;
    CORELANE_ASSIGN(const PatchedModel patched, read(same));
    return make_copy(patched, threads);
  });
}

Result<std::unique_ptr<device::LaneRequest>> OrtProgram::new_request(std::size_t width,
                                                                     std::size_t core) {
  if (width == 0 || width > lanes_ || core >= lanes_)
    return error(Code::kInvalidArgument, "width {} from core {}: this device has {} cores", width,
                 core, lanes_);
  CORELANE_ASSIGN(CopyPtr copy, copy_for(width));
  return make_ort_request(shared_from_this(), std::move(copy));
}

Status OrtProgram::reserve(std::size_t width, std::size_t /*requests*/) {
  const auto copy = copy_for(width);
  return copy ? Status() : copy.error();
}

/// The engine does not report what it holds: constants in the image are known, the rest is what the
/// heap grew by.
device::MemoryFigures OrtProgram::memory() const {
  device::MemoryFigures figures;
  figures.weights = constant_bytes_;
  for (const CopyPtr& copy : copies_.values()) figures.code += copy->heap_growth;
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
