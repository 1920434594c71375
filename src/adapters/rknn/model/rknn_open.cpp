/// rknn_init, rknn_dup_context, rknn_destroy: where a context comes from.
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "adapters/rknn/model/rknn_model.h"
#include "corelane/base/file.h"
#include "corelane/device/registry.h"

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

Result<ByteSpan> slice_of(ByteSpan whole, const rknn_init_extend* extend, std::string_view what) {
  if (extend == nullptr || (extend->real_model_offset == 0 && extend->real_model_size == 0))
    return whole;
  if (extend->real_model_offset < 0 ||
      static_cast<std::size_t>(extend->real_model_offset) >= whole.size())
    return error(Code::kOutOfRange, "real_model_offset {} lies outside of {}, which has {} bytes",
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
    return error(Code::kInvalidArgument,
                 "model_buffer_fd {} is no open descriptor ({}); pass that of the memory or file "
                 "that holds the model",
                 fd, std::strerror(errno));
  if (info.st_size <= 0)
    return error(Code::kInvalidArgument,
                 "model_buffer_fd {} has {} bytes; pass the descriptor of the memory or file that "
                 "holds the model",
                 fd, info.st_size);
  mapped->size = static_cast<std::size_t>(info.st_size);
  mapped->data = mmap(nullptr, mapped->size, PROT_READ, MAP_SHARED, fd, 0);
  if (mapped->data == MAP_FAILED)
    return error(Code::kIo, "model_buffer_fd {} cannot be mapped: {}", fd, std::strerror(errno));
  return mapped;
}

}  // namespace

thread_local const void* ModelContext::inside_operator = nullptr;

LoadOptions ModelContext::load_options() const {
  LoadOptions options;
  options.on = device_;
  options.profile_layers =
      (flags_ & RKNN_FLAG_COLLECT_PERF_MASK) != 0 || log::enabled(log::Level::kLayers);
  options.host_operators = operators_;
  // Operators are registered after rknn_init, so one that nobody knows fails runs only.
  options.import.custom_operators = {std::string(kEveryCustomOperator)};
  options.weights_of = weights_of_;
  return options;
}

/// All or nothing: what was there before stays when this fails.
Status ModelContext::adopt(Program program) {
  auto description = std::make_shared<const ProgramDescription>(program.description());
  for (const auto* side : {&description->inputs, &description->outputs})
    for (const IoEntry& entry : *side)
      if (entry.desc.shape.rank() > RKNN_MAX_DIMS)
        return error(Code::kUnsupportedModel,
                     "'{}' has {} dimensions, this API tells at most {}; use the session or the "
                     "C++ runtime",
                     entry.desc.name, entry.desc.shape.rank(), RKNN_MAX_DIMS);
  CORELANE_ASSIGN(std::vector<Frame> frames, make_frames(program, *description));
  {
    const std::lock_guard lock(state_);
    program_ = std::move(program);
    // The same again when its weights come from other memory: queries may be reading it.
    if (description_ == nullptr) description_ = std::move(description);
  }
  frames_ = std::move(frames);
  input_age_.assign(description_->inputs.size(), 0);
  bound_inputs_.resize(description_->inputs.size());
  bound_outputs_.resize(description_->outputs.size());
  note_shapes();
  if (first_inputs_.empty() && first_outputs_.empty()) {
    first_inputs_ = input_shapes_;
    first_outputs_ = output_shapes_;
  }
  return join_custom_ops();
}

Program ModelContext::program() const {
  const std::lock_guard lock(state_);
  return *program_;
}

/// Models of the vendor's converter have a batch, 1 unless it is asked for. ONNX models that leave
/// dimension 0 open, and nothing else, are given the same here; they run faster for it.
static Status fix_batch(const Result<ImportedModel>& model, ImportOptions& import) {
  if (!model) return model.error();
  for (const IoEntry& input : model->description.inputs) {
    Shape shape = input.desc.shape;
    if (shape.is_static()) continue;
    shape[0] = 1;
    if (!shape.is_static()) {
      import.input_shapes.clear();
      return {};
    }
    import.input_shapes.emplace(input.desc.name, std::move(shape));
  }
  return {};
}

Status ModelContext::load(ByteSpan bytes, std::shared_ptr<const void> keep_alive) {
  file_bytes_ = bytes.size();
  const bool outside = (flags_ & RKNN_FLAG_MEM_ALLOC_OUTSIDE) != 0;
  LoadOptions options = load_options();
  if (detect_file_kind(bytes) == FileKind::kOnnx)
    CORELANE_TRY(fix_batch(import_onnx(bytes, options.import), options.import));
  auto program = load_program(options, [&](const LoadOptions& o) {
    return Program::load(bytes, o, outside ? nullptr : keep_alive);
  });
  if (!program) return program.error();
  if (outside) pending_ = std::make_shared<const ByteVector>(bytes.begin(), bytes.end());
  return adopt(*std::move(program));
}

Status ModelContext::load_file(const std::string& path) {
  const bool outside = (flags_ & RKNN_FLAG_MEM_ALLOC_OUTSIDE) != 0;
  CORELANE_ASSIGN(MappedFile mapped, MappedFile::open(path));
  if (outside) return load(mapped.bytes(), nullptr);
  file_bytes_ = mapped.bytes().size();
  LoadOptions options = load_options();
  if (detect_file_kind(mapped.bytes()) == FileKind::kOnnx)
    CORELANE_TRY(fix_batch(import_onnx_file(path, options.import), options.import));
  auto program = load_program(
      options, [&](const LoadOptions& o) { return Program::load(std::filesystem::path(path), o); });
  if (!program) return program.error();
  return adopt(*std::move(program));
}

Result<std::shared_ptr<ModelContext>> ModelContext::open(const void* model, std::uint32_t size,
                                                         std::uint32_t flags,
                                                         const rknn_init_extend* extend,
                                                         const ModelContext* weights_of) {
  std::shared_ptr<ModelContext> context(new ModelContext);
  context->flags_ = flags;
  log::tell_environment();
  if (weights_of != nullptr) {
    const Order order(*weights_of);
    if (!order.ok()) return error(order.refused().status());
    CORELANE_TRY(weights_of->ready());
    context->weights_of_ = std::make_shared<const Program>(weights_of->program());
  }
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
  CORELANE_ASSIGN(const std::string device, device_text());
  CORELANE_ASSIGN(context->device_, device::open_device(device));
  context->chip_ = chip_of(context->device_->info());

  const bool zero_copy = (flags & RKNN_FLAG_MODEL_BUFFER_ZERO_COPY) != 0;
  if (zero_copy && extend != nullptr && extend->model_buffer_fd > 0) {
    CORELANE_ASSIGN(const std::shared_ptr<MappedFd> mapped, map_fd(extend->model_buffer_fd));
    const ByteSpan whole(static_cast<const std::byte*>(mapped->data), mapped->size);
    CORELANE_ASSIGN(const ByteSpan bytes, slice_of(whole, extend, "model_buffer_fd"));
    CORELANE_TRY(context->load(bytes, mapped));
    return context;
  }
  if (model == nullptr)
    return error(Code::kInvalidArgument,
                 "model is null; give the bytes of a model with their size, or a path with size 0");
  if (size != 0) {
    const ByteSpan bytes(static_cast<const std::byte*>(model), size);
    // The caller's buffer is used as it lies only where he has promised to keep it.
    const std::shared_ptr<const void> keep =
        zero_copy ? std::shared_ptr<const void>(model, [](const void*) {}) : nullptr;
    CORELANE_TRY(context->load(bytes, keep));
    return context;
  }
  const auto* text = static_cast<const char*>(model);
  const std::string path(text, strnlen(text, kMaxPath));
  if (path.empty() || path.size() == kMaxPath)
    return error(Code::kInvalidArgument,
                 "size is 0, so model must be the path of a file; a path of {} characters is none",
                 path.size());
  if (extend != nullptr && (extend->real_model_offset != 0 || extend->real_model_size != 0)) {
    CORELANE_ASSIGN(MappedFile file, MappedFile::open(path));
    const auto held = std::make_shared<const MappedFile>(std::move(file));
    CORELANE_ASSIGN(const ByteSpan bytes, slice_of(held->bytes(), extend, path));
    CORELANE_TRY(context->load(bytes, held));
    return context;
  }
  CORELANE_TRY(context->load_file(path));
  return context;
}

/// Of several allowed shapes the largest is current first, so that memory for it serves all. Where
/// only dimension 0 is open it is 1. Empty: nothing to choose, or nothing that could be.
static std::vector<Shape> first_shapes(const ProgramDescription& description) {
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

Result<std::vector<Frame>> ModelContext::make_frames(const Program& program,
                                                     const ProgramDescription& description) const {
  std::vector<Frame> frames;
  for (std::size_t i = 0; i < (asynchronous() ? 2 : 1); ++i) {
    CORELANE_ASSIGN(Context context, program.new_context());
    if (const std::vector<Shape> shapes = first_shapes(description); !shapes.empty())
      CORELANE_TRY(context.set_input_shapes(shapes));
    Frame frame{std::move(context), {}, 0, {}, {}, {}};
    frame.input_age.resize(description.inputs.size());
    frames.push_back(std::move(frame));
  }
  return frames;
}

void ModelContext::note_shapes() {
  const std::lock_guard lock(state_);
  input_shapes_.clear();
  output_shapes_.clear();
  for (const TensorDesc& desc : frames_.front().context.inputs())
    input_shapes_.push_back(desc.shape);
  for (const TensorDesc& desc : frames_.front().context.outputs())
    output_shapes_.push_back(desc.shape);
  output_shapes_.resize(description_->outputs.size());  // Values that are dumped stand behind them.
}

Status ModelContext::ready() const {
  if (pending_ != nullptr)
    return error(Code::kWrongState,
                 "the context was made with RKNN_FLAG_MEM_ALLOC_OUTSIDE and has no weights yet; "
                 "call rknn_set_weight_mem first");
  if ((flags_ & (RKNN_FLAG_MEM_ALLOC_OUTSIDE | RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE)) != 0 &&
      internal_memory_ == nullptr)
    return error(Code::kWrongState,
                 "internal memory comes from the caller by the flags of rknn_init and is not "
                 "there yet; call rknn_set_internal_mem first");
  if ((flags_ & RKNN_FLAG_COLLECT_MODEL_INFO_ONLY) != 0)
    return error(Code::kWrongState,
                 "the context was made with RKNN_FLAG_COLLECT_MODEL_INFO_ONLY and answers "
                 "RKNN_QUERY_MEM_SIZE only; make another one to run");
  return {};
}

Result<std::shared_ptr<ModelContext>> ModelContext::duplicate() {
  const Order order(*this);
  if (!order.ok()) return error(order.refused().status());
  if (pending_ != nullptr) CORELANE_TRY(ready());
  std::shared_ptr<ModelContext> copy(new ModelContext);
  copy->flags_ = flags_ & ~static_cast<std::uint32_t>(RKNN_FLAG_MEM_ALLOC_OUTSIDE |
                                                      RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE);
  copy->device_ = device_;
  copy->chip_ = chip_;
  copy->operators_ = operators_;
  copy->custom_ops_ = custom_ops_;
  copy->cores_ = cores_;
  copy->file_bytes_ = file_bytes_;
  copy->weight_memory_ = weight_memory_;
  CORELANE_TRY(copy->adopt(program()));
  return copy;
}

void ModelContext::close() {
  {
    // A run that waits for a fence of its caller may never end by itself.
    const std::lock_guard lock(state_);
    closing_ = true;
    for (const auto& fence : in_fences_)
      fence->signal(error(Code::kCancelled, "the context was destroyed before the fence came"));
    in_fences_.clear();
  }
  const std::lock_guard lock(order_);
  closed_ = true;
  for (Frame& frame : frames_) {
    if (check::enabled() && open(frame))
      check::report(check::current(),
                    "the context is destroyed while nobody has waited for frame {}", frame.id);
    if (frame.deferred) frame.abandoned = frame.deferred->finish();
    frame.deferred.reset();
    if (frame.flight) {
      frame.flight->cancel();
      (void)frame.flight->wait();
      frame.abandoned = std::move(frame.flight);
    }
    if (frame.abandoned && binds_memory()) frame.abandoned->wait_released();
    frame.flight.reset();
    frame.abandoned.reset();
    check_after_run(frame);
  }
  custom_share_.reset();
  if (check::enabled()) check_close();
}

static bool any_bound(const std::vector<std::optional<Bound>>& bounds) noexcept {
  return std::any_of(bounds.begin(), bounds.end(), [](const auto& b) { return b.has_value(); });
}

bool ModelContext::binds_outputs() const noexcept { return any_bound(bound_outputs_); }

bool ModelContext::binds_memory() const noexcept {
  return binds_outputs() || any_bound(bound_inputs_);
}

ModelContext::~ModelContext() {
  for (void* buffer : given_out_) std::free(buffer);
}

IoTensor ModelContext::input_tensor(std::size_t index, const Shape& shape) const {
  return {&description_->inputs[index], shape, Side::kInput, static_cast<std::uint32_t>(index)};
}
IoTensor ModelContext::output_tensor(std::size_t index, const Shape& shape) const {
  return {&description_->outputs[index], shape, Side::kOutput, static_cast<std::uint32_t>(index)};
}
IoTensor ModelContext::current_input(std::size_t index) const {
  const std::lock_guard lock(state_);
  return input_tensor(index, input_shapes_[index]);
}
IoTensor ModelContext::current_output(std::size_t index) const {
  const std::lock_guard lock(state_);
  return output_tensor(index, output_shapes_[index]);
}

Order::Order(const ModelContext& context) : context_(context) {
  if (ModelContext::inside_operator == nullptr) {
    lock_ = std::unique_lock(context.order_);
  } else {
    // The run that this is part of may hold it, in this thread or in another.
    if (context.holder_.load(std::memory_order_acquire) != std::this_thread::get_id())
      lock_ = std::unique_lock(context.order_, std::try_to_lock);
    const auto runs = [](const Frame& f) {
      return f.deferred != nullptr || (f.flight && !f.flight->done());
    };
    if (!lock_.owns_lock() || std::any_of(context.frames_.begin(), context.frames_.end(), runs)) {
      if (lock_.owns_lock()) lock_.unlock();
      refused_ = Status(Code::kWrongState,
                        "called from inside a custom operator while the context is running; "
                        "queries are allowed there, this is not");
      return;
    }
  }
  if (context.closed_) {
    lock_.unlock();
    refused_ = {RKNN_ERR_CTX_INVALID, stale_handle(context.number_)};
    return;
  }
  context.holder_.store(std::this_thread::get_id(), std::memory_order_release);
}

Order::~Order() {
  if (lock_.owns_lock()) context_.holder_.store({}, std::memory_order_release);
}

Found::Found(rknn_context handle) {
  const std::shared_ptr<Handle> object = find_handle(handle);
  if (object == nullptr) {
    status_ = stale_handle(handle);
  } else if (object->kind() != HandleKind::kModel) {
    status_ = corelane::error(Code::kInvalidArgument,
                              "context {:#x} is one of rknn_matmul_create; this function takes "
                              "those of rknn_init",
                              handle);
  } else {
    context_ = std::static_pointer_cast<ModelContext>(object);
  }
}

}  // namespace corelane::rknn
