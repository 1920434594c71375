/// rknn_matmul_create and what needs no numbers: memory, cores, shapes, the run.
#include "adapters/rknn/matmul/rknn_matmul.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "adapters/rknn/api/rknn_chip.h"
#include "adapters/rknn/api/rknn_log.h"
#include "adapters/rknn/model/rknn_attr.h"
#include "base/later.h"
#include "corelane/device/registry.h"

namespace corelane::rknn {
namespace {

/// Products are not part of every driver: a device says by an image kind that it computes them.
Status check_device(const device::Device& device) {
  const auto& kinds = device.info().capabilities.image_kinds;
  if (std::find(kinds.begin(), kinds.end(), device::kMatmulKind) != kinds.end()) return {};
  return error(
      Code::kDeviceLost,
      "device {} does not compute matrix products by themselves; set CORELANE_DEVICE=virtual, "
      "or put the product into a model",
      device.info().instance);
}

std::string shape_text(const rknn_matmul_shape& shape) {
  return fmt::format("({}, {}, {})", shape.M, shape.K, shape.N);
}

/// By addresses: two mappings of one block of the system are not found.
bool overlap(const Memory& a, std::size_t a_bytes, const Memory& c, std::size_t c_bytes) {
  const auto* a_begin = static_cast<const char*>(a.data);
  const auto* c_begin = static_cast<const char*>(c.data);
  return a_begin < c_begin + c_bytes && c_begin < a_begin + a_bytes;
}

std::size_t index_of(Matrix matrix) { return static_cast<std::size_t>(matrix); }

}  // namespace

/// The name is all that a program has to keep of the attribute that it was given.
Result<Matrix> matrix_of(const char (&name)[RKNN_MAX_NAME_LEN]) {
  for (const Matrix matrix : {Matrix::kA, Matrix::kB, Matrix::kC})
    if (name[0] == matrix_name(matrix)[0] && name[1] == '\0') return matrix;
  return error(Code::kNotFound, "name '{}' is not a matrix; use \"A\", \"B\" or \"C\"",
               std::string_view(name, strnlen(name, sizeof name)));
}

std::string_view matrix_name(Matrix matrix) noexcept {
  return matrix == Matrix::kA ? "A" : matrix == Matrix::kB ? "B" : "C";
}

MatmulContext::MatmulContext()
    : Handle(kKind),
      // A run of another thread holds the lock while it waits for a core.
      mutex_(
          "called from inside a custom operator while another thread works with this product, "
          "whose run may wait for the core that the operator holds; call it before or after "
          "the model's run") {}

/// `io` is written shape by shape: on a failure the caller gets no context, and its `io` means
/// nothing.
Status MatmulContext::add_shapes(const std::vector<rknn_matmul_shape>& shapes,
                                 rknn_matmul_io_attr* io) {
  const bool same_b = plan_.b_layout == RKNN_MM_LAYOUT_NATIVE;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (same_b && (shapes[i].K != shapes[0].K || shapes[i].N != shapes[0].N))
      return error(Code::kInvalidArgument,
                   "shape {} (M, K, N) = {} has another K or N than {}; with native B all shapes "
                   "share it, use the normal layout for others",
                   i, shape_text(shapes[i]), shape_text(shapes[0]));
    auto desc = describe_matmul(plan_, shapes[i]);
    if (!desc)
      return dynamic_ ? desc.error().wrap(fmt::format("shape {} of the list", i)) : desc.error();
    rknn_matmul_io_attr attr;
    CORELANE_TRY(fill_matmul_attr(*desc, attr));
    io[i] = attr;
    sizes_.push_back({*std::move(desc), {attr.A.size, attr.B.size, attr.C.size}, {}});
  }
  return {};
}

Result<std::shared_ptr<MatmulContext>> MatmulContext::create(
    const void* info, const std::vector<rknn_matmul_shape>& shapes, bool dynamic,
    rknn_matmul_io_attr* io) {
  std::shared_ptr<MatmulContext> context(new MatmulContext);
  CORELANE_ASSIGN(context->timeout_, timeout_from_environment());
  CORELANE_ASSIGN(const std::string device, device_text());
  CORELANE_ASSIGN(context->device_, device::open_device(device));
  CORELANE_TRY(check_device(*context->device_));
  context->chip_ = chip_of(context->device_->info());
  context->dynamic_ = dynamic;
  CORELANE_ASSIGN(context->plan_,
                  plan_matmul(info, matmul_chip(context->device_->info().profile), dynamic));
  const ContextLock lock(context->mutex_);
  CORELANE_TRY(context->add_shapes(shapes, io));
  if (!dynamic) {
    context->chosen_ = 0;
    // Prepared here, so that a product that the device refuses fails now.
    CORELANE_TRY(context->prepare(context->sizes_[0]));
  }
  CORELANE_ASSIGN(context->queue_, context->device_->make_queue(
                                       {.name = "matmul", .timeout_option = kTimeoutVariable}));
  return context;
}

/// ContextMutex::close() has taken the lock: memory and packed copies go here, not with the last
/// pointer to the context, which another function of it may still hold.
void MatmulContext::close(rknn_context number) {
  mutex_.close(number);
  if (abandoned_ != nullptr) (void)abandoned_->wait_released(kNever);
  abandoned_.reset();
  sizes_.clear();
  b_watch_.reset();
  bound_ = {};
  mutex_.unlock();
}

/// The pointer is valid while the lock is held: `sizes_` does not change after create().
Result<MatmulContext::Size*> MatmulContext::current() {
  if (chosen_ < sizes_.size()) return &sizes_[chosen_];
  return error(Code::kWrongState,
               "none of the {} shapes is chosen; call rknn_matmul_set_dynamic_shape first",
               sizes_.size());
}

/// One Watch serves all shapes, so it covers as many bytes as any of them reads.
std::size_t MatmulContext::largest_b() const noexcept {
  std::size_t largest = 0;
  for (const Size& size : sizes_) largest = std::max(largest, size.bytes[index_of(Matrix::kB)]);
  return largest;
}

DType MatmulContext::type_of(Matrix matrix) const noexcept {
  return matrix == Matrix::kA   ? plan_.types.a
         : matrix == Matrix::kB ? plan_.types.b
                                : plan_.types.c;
}

/// Takes effect at the next run, which checks the memory once more, against the shape of then.
Outcome MatmulContext::set_io_mem(const rknn_tensor_mem* mem, const rknn_matmul_tensor_attr& attr) {
  CORELANE_ASSIGN(const Matrix matrix, matrix_of(attr.name));
  CORELANE_ASSIGN(std::shared_ptr<Memory> memory, find_memory(mem));
  const ContextLock lock(mutex_);
  if (!lock.ok()) return lock.refused();
  CORELANE_ASSIGN(Size* const size, current());
  const std::size_t needed = size->bytes[index_of(matrix)];
  if (memory->size < needed)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "mem of {} has {} bytes, {} takes {}; create it with attr->size of the {} that "
                   "rknn_matmul_create filled in",
                   matrix_name(matrix), memory->size, size->desc.to_string(), needed,
                   matrix_name(matrix));
  const std::size_t alignment = std::max<std::size_t>(1, dtype_bits(type_of(matrix)) / 8);
  if (reinterpret_cast<std::uintptr_t>(memory->data) % alignment != 0)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "mem of {} begins at {}, which is not a multiple of the {} bytes of an element; "
                   "choose another offset in the block",
                   matrix_name(matrix), memory->data, alignment);
  const rknn_tensor_type own = rknn::type_of(type_of(matrix));
  if (attr.type != own || attr.size != needed)
    log::line(log::Level::kWarn,
              "rknn_matmul_set_io_mem: attr of {} says {} bytes of type {}, the product takes {} "
              "bytes of type {}; only its name counts, nothing is converted",
              matrix_name(matrix), attr.size, static_cast<int>(attr.type), needed,
              static_cast<int>(own));
  BoundMatrix& bound = bound_[index_of(matrix)];
  if (bound.memory != memory)
    // Otherwise the bindings of other shapes would keep the old memory and its packed copy.
    for (Size& other : sizes_)
      if (&other != size) other.ready.forget_bindings();
  bound = {std::move(memory), ++age_};
  if (matrix == Matrix::kB)
    b_watch_ = std::make_unique<Watch>(bound.memory, std::min(bound.memory->size, largest_b()));
  return {};
}

Outcome MatmulContext::set_core_mask(rknn_core_mask mask) {
  device::CoreSet cores;
  if (Outcome bad = read_core_mask(mask, chip_, cores); bad.code() != RKNN_SUCC) return bad;
  const ContextLock lock(mutex_);
  if (!lock.ok()) return lock.refused();
  cores_ = cores;
  return {};
}

Outcome MatmulContext::set_dynamic_shape(const rknn_matmul_shape& shape) {
  const ContextLock lock(mutex_);
  if (!lock.ok()) return lock.refused();
  if (!dynamic_)
    return Status(Code::kWrongState,
                  "this product has one shape; make it with rknn_matmul_create_dynamic_shape to "
                  "choose among several");
  std::string known;
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    const device::MatmulDesc& desc = sizes_[i].desc;
    if (desc.m == shape.M && desc.k == shape.K && desc.n == shape.N) {
      chosen_ = i;
      return {};
    }
    if (i < 16) known += fmt::format(" ({}, {}, {})", desc.m, desc.k, desc.n);
  }
  return outcome(RKNN_ERR_PARAM_INVALID,
                 "shape (M, K, N) = {} is not one of the {} that rknn_matmul_create_dynamic_shape "
                 "was given:{}{}",
                 shape_text(shape), sizes_.size(), known, sizes_.size() > 16 ? " ..." : "");
}

/// At each run, since shapes and memory are chosen in any order.
Status MatmulContext::check_bound(const Size& size) const {
  for (const Matrix matrix : {Matrix::kA, Matrix::kB, Matrix::kC}) {
    const BoundMatrix& bound = bound_[index_of(matrix)];
    const std::size_t needed = size.bytes[index_of(matrix)];
    if (bound.memory == nullptr)
      return error(Code::kWrongState,
                   "{} has no memory; call rknn_matmul_set_io_mem for A, B and C before the run",
                   matrix_name(matrix));
    if (bound.memory->buffer == nullptr && bound.memory->destroyed.load(std::memory_order_acquire))
      return error(Code::kWrongState,
                   "mem of {} was destroyed by rknn_destroy_mem, and its memory is the caller's; "
                   "call rknn_matmul_set_io_mem with another before the run",
                   matrix_name(matrix));
    if (bound.memory->size < needed)
      return error(Code::kWrongState,
                   "mem of {} has {} bytes, {} takes {}; call rknn_matmul_set_io_mem after "
                   "rknn_matmul_set_dynamic_shape",
                   matrix_name(matrix), bound.memory->size, size.desc.to_string(), needed);
  }
  const BoundMatrix& c = bound_[2];
  for (const Matrix matrix : {Matrix::kA, Matrix::kB})
    if (overlap(*bound_[index_of(matrix)].memory, size.bytes[index_of(matrix)], *c.memory,
                size.bytes[2]))
      return error(Code::kWrongState,
                   "C lies over {}, which is read while C is written; bind memory of its own",
                   matrix_name(matrix));
  return {};
}

/// What was prepared is kept until the quantization changes; scales are part of the image.
Status MatmulContext::prepare(Size& size) {
  Ready& ready = size.ready;
  // Lost with its device: B is packed again, too.
  if (ready.executable != nullptr && ready.executable->lost()) ready = {};
  if (ready.bindings != nullptr) return {};
  if (ready.executable == nullptr) {
    CORELANE_ASSIGN(const device::MatmulDesc desc, with_quant(size));
    const auto bytes = std::make_shared<const ByteVector>(device::encode(desc));
    device::Image image;
    image.kind = device::kMatmulKind;
    image.bytes = *bytes;
    image.keep_alive = bytes;
    CORELANE_ASSIGN(ready.executable, device_->prepare(image, {}));
  }
  CORELANE_ASSIGN(ready.bindings, ready.executable->new_bindings());
  return {};
}

/// B is packed once and used again until it is announced as new: rknn_matmul_set_io_mem, or a sync
/// to the device of any memory that shares its bytes (Watch). A and C are read and written in
/// place.
Status MatmulContext::bind_one(Size& size, Matrix matrix) {
  const std::size_t i = index_of(matrix);
  Ready& ready = size.ready;
  const BoundMatrix& bound = bound_[i];
  const std::uint64_t writes =
      matrix == Matrix::kB ? bound.memory->writes.load(std::memory_order_acquire) : 0;
  const bool checked = matrix == Matrix::kB && check::enabled();
  const std::uint64_t hash = checked ? check::hash_of(bound.memory->data, size.bytes[i]) : 0;
  if (ready.ages[i] == bound.age && (matrix != Matrix::kB || writes == ready.b_writes)) {
    if (checked && hash != std::exchange(ready.b_hash, hash))
      check::report(edge::current_call(),
                    "B was written after it was last announced, and the product may use the copy "
                    "that was made then; call rknn_mem_sync(TO_DEVICE) after writing");
    return {};
  }
  const bool output = matrix == Matrix::kC;
  const TensorDesc& desc = output ? ready.executable->outputs()[0] : ready.executable->inputs()[i];
  const device::TensorRef ref{bound.memory->data, size.bytes[i], desc.shape, bound.memory};
  // For B this also says that its content is new.
  CORELANE_TRY(output ? ready.bindings->set_output(0, ref) : ready.bindings->set_input(i, ref));
  ready.ages[i] = bound.age;
  if (matrix == Matrix::kB) ready.b_writes = writes;
  if (checked) ready.b_hash = hash;
  return {};
}

Status MatmulContext::bind(Size& size) {
  CORELANE_TRY(check_bound(size));
  for (const Matrix matrix : {Matrix::kA, Matrix::kB, Matrix::kC})
    CORELANE_TRY(bind_one(size, matrix));
  return {};
}

/// The matrices are used in place, so one that was abandoned must let go of them first.
Status MatmulContext::await_abandoned() {
  if (abandoned_ == nullptr) return {};
  if (!abandoned_->wait_released(later(device_->clock()->now(), timeout_)))
    return error(Code::kTimeout,
                 "the product before was abandoned and has not let go of its matrices yet; destroy "
                 "the context and make another, with memory of its own");
  abandoned_.reset();
  return {};
}

/// With a limit of time: never in this thread.
Status MatmulContext::run_limited(const Size& size, device::Submission job) {
  job.deadline = later(device_->clock()->now(), timeout_);
  CORELANE_ASSIGN(auto completion, queue_->submit(job));
  (void)completion->wait();
  Status status = completion->status();
  if (!completion->released()) abandoned_ = std::move(completion);
  if (status.code() != Code::kTimeout) return status;
  return status.wrap(fmt::format(
      "the product {} was over its {} ms ({}); raise the limit if it may take longer, else its "
      "core hung: the next run starts anew",
      size.desc.to_string(), timeout_ / std::chrono::milliseconds(1), kTimeoutVariable));
}

Outcome MatmulContext::run() {
  if (inside_operator())
    return outcome(RKNN_ERR_FAIL,
                   "called from inside a custom operator, which holds the core that this product "
                   "might wait for; multiply before or after the model's run");
  const ContextLock lock(mutex_);
  if (!lock.ok()) return lock.refused();
  CORELANE_ASSIGN(Size* const size, current());
  CORELANE_TRY(await_abandoned());
  CORELANE_TRY(prepare(*size));
  CORELANE_TRY(bind(*size));
  device::Submission job;
  job.executable = size->ready.executable;
  job.bindings = size->ready.bindings;
  job.cores = cores_;
  CORELANE_TRY(timeout_ == Duration{0} ? queue_->run(job) : run_limited(*size, std::move(job)));
  if (normalizes()) normalize(*size);
  return {};
}

}  // namespace corelane::rknn
