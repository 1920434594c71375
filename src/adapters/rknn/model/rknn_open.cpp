/// rknn_init, rknn_dup_context, rknn_destroy: where a context comes from.
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>

#include "adapters/rknn/api/rknn_log.h"
#include "adapters/rknn/checks/rknn_dump.h"
#include "adapters/rknn/model/rknn_model.h"
#include "base/process/errno_text.h"
#include "corelane/base/file.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/program/program_file.h"
#include "corelane/runtime/output_shapes.h"

namespace corelane::rknn {
namespace {

constexpr std::uint32_t kKnownFlags = 0x3ffff;
constexpr std::size_t kMaxPath = 4096;

/// A descriptor's content, mapped for as long as this lives.
struct MappedFd {
  void* data = MAP_FAILED;
  std::size_t size = 0;
  ~MappedFd() {
    if (data != MAP_FAILED) munmap(data, size);
  }
};

/// `real_model_offset` and `real_model_size` cut a model out of a larger file; 0 and 0 mean all of
/// it.
Result<ByteSpan> slice_of(ByteSpan whole, const rknn_init_extend* extend, std::string_view what) {
  if (extend == nullptr || (extend->real_model_offset == 0 && extend->real_model_size == 0))
    return whole;
  if (extend->real_model_offset < 0 ||
      static_cast<std::size_t>(extend->real_model_offset) >= whole.size())
    return error(Code::kOutOfRange, "real_model_offset {} lies outside {}, which has {} bytes",
                 extend->real_model_offset, what, whole.size());
  const ByteSpan rest = whole.subspan(static_cast<std::size_t>(extend->real_model_offset));
  if (extend->real_model_size == 0) return rest;
  if (extend->real_model_size > rest.size())
    return error(Code::kOutOfRange,
                 "real_model_offset {} and real_model_size {} reach beyond {}, which has {} bytes",
                 extend->real_model_offset, extend->real_model_size, what, whole.size());
  return rest.first(extend->real_model_size);
}

Result<std::shared_ptr<MappedFd>> map_fd(int fd) {
  struct stat info {};
  auto mapped = std::make_shared<MappedFd>();
  if (fstat(fd, &info) != 0)
    return error(
        Code::kInvalidArgument,
        "model_buffer_fd {} is not an open descriptor ({}); pass that of the memory or file "
        "that holds the model",
        fd, errno_text());
  if (info.st_size <= 0)
    return error(Code::kInvalidArgument,
                 "model_buffer_fd {} has {} bytes; pass the descriptor of the memory or file that "
                 "holds the model",
                 fd, info.st_size);
  mapped->size = static_cast<std::size_t>(info.st_size);
  mapped->data = mmap(nullptr, mapped->size, PROT_READ, MAP_SHARED, fd, 0);
  if (mapped->data == MAP_FAILED)
    return error(Code::kIo, "model_buffer_fd {} cannot be mapped: {}", fd, errno_text());
  return mapped;
}

/// kUnsupportedModel for what the API's numbers cannot say.
Status check_tensor(const IoEntry& entry) {
  const TensorDesc& desc = entry.desc;
  constexpr std::string_view kInstead = "use the session or the C++ runtime";
  if (!desc.value.empty())
    return error(Code::kUnsupportedModel, "'{}' is a {}, for which this API has no memory; {}",
                 desc.name, desc.value.to_string(), kInstead);
  if (desc.shape.rank() > RKNN_MAX_DIMS)
    return error(Code::kUnsupportedModel, "'{}' has {} dimensions, this API has at most {}; {}",
                 desc.name, desc.shape.rank(), RKNN_MAX_DIMS, kInstead);
  if (is_opaque(desc.dtype) || is_opaque(entry.reported_dtype))
    return error(Code::kUnsupportedModel, "'{}' is of {}, for which this API has no number; {}",
                 desc.name, dtype_name(is_opaque(desc.dtype) ? desc.dtype : entry.reported_dtype),
                 kInstead);
  return {};
}

/// All frames have the same shapes, at all times.
Result<std::vector<Frame>> make_frames(const Program& program, const ModelFacts& facts) {
  std::vector<Frame> frames;
  for (std::size_t i = 0; i < (facts.asynchronous() ? 2 : 1); ++i) {
    CORELANE_ASSIGN(Context context, program.new_context({.keep_states = false}));
    if (const std::vector<Shape> shapes = first_shapes(*facts.description); !shapes.empty())
      CORELANE_TRY(context.set_input_shapes(shapes));
    frames.push_back({.context = std::move(context)});
  }
  return frames;
}

/// Lines about flags that have no effect here.
void log_flags(std::uint32_t flags) {
  if ((flags & ~kKnownFlags) != 0)
    log::line(log::Level::kWarn, "rknn_init: flags {:#x} are not known and have no effect",
              flags & ~kKnownFlags);
  for (const auto& [bit, text] :
       {std::pair{RKNN_FLAG_ENABLE_SRAM, "there is no SRAM on this device"},
        std::pair{RKNN_FLAG_SHARE_SRAM, "there is no SRAM to share on this device"},
        std::pair{RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU, "no operator falls back to a GPU"}})
    if ((flags & static_cast<std::uint32_t>(bit)) != 0)
      log::line(log::Level::kInfo, "rknn_init: flag {:#x} accepted without effect: {}",
                static_cast<std::uint32_t>(bit), text);
}

/// Empty where one set covers all, or the outputs cannot be told.
SetOutputs outputs_of_sets(ByteSpan bytes, const ProgramDescription& told) {
  if (largest_sets(told).size() < 2) return {};
  // In place: the bytes outlive the file.
  const auto file =
      ProgramFile::from_bytes(bytes, std::shared_ptr<const void>(bytes.data(), [](auto*) {}));
  if (!file) return {};
  return output_shapes(**file).value_or(SetOutputs());
}

bool covers(const std::vector<Shape>& large, const std::vector<Shape>& small) {
  return std::ranges::equal(large, small, [](const Shape& a, const Shape& b) {
    return std::ranges::equal(a.dims(), b.dims(), std::ranges::greater_equal());
  });
}

}  // namespace

/// The sets of shapes that no other set covers; of two equal ones the first.
std::vector<std::vector<Shape>> largest_sets(const ProgramDescription& description) {
  const auto& sets = description.shape_sets;
  std::vector<std::vector<Shape>> largest;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    bool covered = false;
    for (std::size_t k = 0; k < sets.size() && !covered; ++k)
      covered = k != i && covers(sets[k], sets[i]) && (k < i || sets[k] != sets[i]);
    if (!covered) largest.push_back(sets[i]);
  }
  return largest;
}

std::vector<Shape> first_shapes(const ProgramDescription& description) {
  const auto elements = [](const std::vector<Shape>& set) {
    std::size_t sum = 0;
    for (const Shape& shape : set) sum += shape.elements().value_or(0);
    return sum;
  };
  const auto& sets = description.shape_sets;
  const auto largest =
      std::max_element(sets.begin(), sets.end(),
                       [&](const auto& a, const auto& b) { return elements(a) < elements(b); });
  if (largest != sets.end()) return *largest;
  std::vector<Shape> shapes;
  bool open = false;
  for (const IoEntry& input : description.inputs) {
    Shape shape = input.desc.shape;
    open = open || !shape.is_static();
    if (shape.rank() > 0 && shape[0] == Shape::kOpen) shape[0] = 1;
    if (!shape.is_static()) return {};
    shapes.push_back(std::move(shape));
  }
  return open ? shapes : std::vector<Shape>();
}

LoadOptions ModelContext::load_options() const {
  LoadOptions options;
  options.on = facts_.device;
  options.profile_layers =
      facts_.has(RKNN_FLAG_COLLECT_PERF_MASK) || log::enabled(log::Level::kLayers);
  options.host_operators = facts_.operators;
  // Operators are registered after rknn_init: one that nobody registers fails the runs only.
  options.import.custom_operators = {std::string(kEveryCustomOperator)};
  // Models of the vendor's converter have a batch, 1 unless it is asked for. ONNX models that leave
  // dimension 0 open, and nothing else, are given the same; they run faster for it.
  options.import.open_batch = 1;
  options.import.external_data_root = facts_.folder;
  options.weights_of = weights_of_;
  options.weights_option = "RKNN_FLAG_SHARE_WEIGHT_MEM, and its context in extend->ctx";
  options.timeout_option = kTimeoutVariable;
  return options;
}

Status ModelContext::adopt(Program program) {
  // Kept when weights come from other memory: it is the same, and queries may be reading it.
  if (facts_.description == nullptr) {
    auto told = std::make_shared<ProgramDescription>(program.description());
    for (auto* side : {&told->inputs, &told->outputs}) std::ranges::for_each(*side, keep_one_scale);
    facts_.description = std::move(told);
  }
  for (const auto* side : {&facts_.description->inputs, &facts_.description->outputs})
    for (const IoEntry& entry : *side) CORELANE_TRY(check_tensor(entry));
  CORELANE_ASSIGN(std::vector<Frame> frames, make_frames(program, facts_));
  queries_.set_program(std::move(program));
  runs_.set_frames(std::move(frames));
  return {};
}

/// Without `keep_alive` the bytes are the caller's for the length of this call, and are copied.
Status ModelContext::load(ByteSpan bytes, std::shared_ptr<const void> keep_alive) {
  facts_.program_bytes = bytes.size();
  const bool outside = facts_.has(RKNN_FLAG_MEM_ALLOC_OUTSIDE);
  CORELANE_ASSIGN(Program program, load_dumped(load_options(), [&](const LoadOptions& o) {
                    return Program::load(bytes, o, outside ? nullptr : keep_alive);
                  }));
  facts_.set_outputs = outputs_of_sets(bytes, program.description());
  const ContextLock lock(runs_.mutex());
  if (outside)
    runs_.outside().pending = std::make_shared<const ByteVector>(bytes.begin(), bytes.end());
  return adopt(std::move(program));
}

/// By path where possible: the runtime maps the file.
Status ModelContext::load_file(const std::string& path) {
  CORELANE_ASSIGN(MappedFile mapped, MappedFile::open(path));
  if (facts_.has(RKNN_FLAG_MEM_ALLOC_OUTSIDE)) {
    std::error_code none;  // Then external data are refused.
    facts_.folder = std::filesystem::absolute(path, none).parent_path();
    return load(mapped.bytes(), nullptr);
  }
  facts_.program_bytes = mapped.bytes().size();
  CORELANE_ASSIGN(Program program, load_dumped(load_options(), [&](const LoadOptions& o) {
                    return Program::load(std::filesystem::path(path), o);
                  }));
  facts_.set_outputs = outputs_of_sets(mapped.bytes(), program.description());
  const ContextLock lock(runs_.mutex());
  return adopt(std::move(program));
}

/// Finds the bytes that rknn_init means, and whether they may be used in place.
Status ModelContext::open_model(const void* model, std::uint32_t size,
                                const rknn_init_extend* extend) {
  const bool zero_copy = facts_.has(RKNN_FLAG_MODEL_BUFFER_ZERO_COPY);
  if (zero_copy && extend != nullptr && extend->model_buffer_fd > 0) {
    CORELANE_ASSIGN(const std::shared_ptr<MappedFd> mapped, map_fd(extend->model_buffer_fd));
    const ByteSpan whole(static_cast<const std::byte*>(mapped->data), mapped->size);
    CORELANE_ASSIGN(const ByteSpan bytes, slice_of(whole, extend, "model_buffer_fd"));
    return load(bytes, mapped);
  }
  if (model == nullptr)
    return error(Code::kInvalidArgument,
                 "model is null; give the bytes of a model with their size, or a path with size 0");
  if (size != 0) {
    const ByteSpan whole(static_cast<const std::byte*>(model), size);
    CORELANE_ASSIGN(const ByteSpan bytes, slice_of(whole, extend, "the model buffer"));
    // The caller's buffer is used where it lies only if the caller promised to keep it.
    return load(bytes,
                zero_copy ? std::shared_ptr<const void>(model, [](const void*) {}) : nullptr);
  }
  const auto* text = static_cast<const char*>(model);
  const std::string path(text, strnlen(text, kMaxPath));
  if (path.empty() || path.size() == kMaxPath)
    return error(Code::kInvalidArgument,
                 "size is 0, so model must be the path of a file; {} characters are not a path",
                 path.size());
  if (extend == nullptr || (extend->real_model_offset == 0 && extend->real_model_size == 0))
    return load_file(path);
  CORELANE_ASSIGN(MappedFile file, MappedFile::open(path));
  const auto held = std::make_shared<const MappedFile>(std::move(file));
  CORELANE_ASSIGN(const ByteSpan bytes, slice_of(held->bytes(), extend, path));
  return load(bytes, held);
}

/// The context has no handle yet, so that no other thread can reach it.
Outcome ModelContext::open(const void* model, std::uint32_t size, std::uint32_t flags,
                           const rknn_init_extend* extend, const ModelContext* weights_of,
                           std::shared_ptr<ModelContext>& made) {
  std::shared_ptr<ModelContext> context(new ModelContext);
  context->facts_.flags = flags;
  log::log_environment();
  if (weights_of != nullptr) {
    const ContextLock lock(weights_of->runs_.mutex());
    if (!lock.ok()) return lock.refused();
    CORELANE_TRY(weights_of->runs_.ready());
    context->weights_of_ = std::make_shared<const Program>(weights_of->queries_.program());
  }
  log_flags(flags);
  CORELANE_ASSIGN(context->facts_.timeout, timeout_from_environment());
  CORELANE_ASSIGN(const std::string device, device_text());
  CORELANE_ASSIGN(context->facts_.device, device::open_device(device));
  context->facts_.chip = chip_of(context->facts_.device->info());
  CORELANE_TRY(context->open_model(model, size, extend));
  CORELANE_TRY(context->join_custom_ops());
  made = std::move(context);
  return {};
}

Outcome ModelContext::duplicate(std::shared_ptr<ModelContext>& made) {
  std::shared_ptr<ModelContext> copy(new ModelContext);
  OutsideMemory outside;
  device::CoreSet cores;
  {
    const ContextLock lock(runs_.mutex());
    if (!lock.ok()) return lock.refused();
    if (runs_.outside().pending != nullptr) CORELANE_TRY(runs_.ready());
    outside.weights = runs_.outside().weights;
    cores = runs_.cores();
  }
  // The rest is constant, or has a lock of its own. The copy's tensors are made, and its operators
  // initialised, without the lock of this context.
  copy->facts_ = facts_;
  copy->facts_.flags &=
      ~static_cast<std::uint32_t>(RKNN_FLAG_MEM_ALLOC_OUTSIDE | RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE);
  copy->custom_ops_ = custom_ops_;
  {
    const ContextLock lock(copy->runs_.mutex());
    copy->runs_.outside() = std::move(outside);
    copy->runs_.cores() = cores;
    CORELANE_TRY(copy->adopt(queries_.program()));
  }
  CORELANE_TRY(copy->join_custom_ops());
  made = std::move(copy);
  return {};
}

rknn_context ModelContext::publish(std::shared_ptr<ModelContext> context) {
  ModelContext& published = *context;
  return published.facts_.number = add_handle(std::move(context));
}

void ModelContext::close() {
  runs_.close();
  // Calls `destroy` of custom operators, without the lock: no function uses the context any more.
  custom_share_.reset();
}

}  // namespace corelane::rknn
