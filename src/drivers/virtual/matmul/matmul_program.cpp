#include "drivers/virtual/matmul/matmul_program.h"

#include <utility>

#include "base/guard.h"
#include "drivers/virtual/matmul/matmul_pack.h"

namespace corelane::drivers::virtual_npu {
namespace {

/// All that the packed form depends on besides the bytes.
std::string meaning_of(const device::MatmulDesc& desc, GemmForm form) {
  device::MatmulDesc b;
  b.k = desc.k;
  b.n = desc.n;
  b.b = desc.b;
  b.b_layout = desc.b_layout;
  b.b_block_n = desc.b_block_n;
  b.b_block_k = desc.b_block_k;
  b.k_segment = desc.k_segment;
  if (!sums_integers(form)) {
    b.b_quant = desc.b_quant;
    b.group_size = desc.group_size;
    b.b_scales = desc.b_scales;
    b.b_zero_points = desc.b_zero_points;
  }
  return std::to_string(static_cast<int>(form)) + content_hash(device::encode(b));
}

/// What a network takes and a product does not.
Status check_options(const device::MatmulDesc& desc, const device::MatmulTensors& tensors,
                     const device::PrepareOptions& options) {
  if (options.precision != device::Precision::kF32)
    return error(Code::kUnsupported, "{} computes in f32; it was asked for {}", desc.to_string(),
                 device::precision_name(options.precision));
  if (!options.exposed_values.empty())
    return error(Code::kNotFound, "{} has no inner value '{}'", desc.to_string(),
                 options.exposed_values.front());
  if (options.input_shapes.empty()) return {};
  if (options.input_shapes.size() != 2 || options.input_shapes[0] != tensors.a.shape ||
      options.input_shapes[1] != tensors.b.shape)
    return error(Code::kShapeMismatch,
                 "the image says A {} and B {}; leave input_shapes empty, and prepare another "
                 "image for another M",
                 tensors.a.shape.to_string(), tensors.b.shape.to_string());
  return {};
}

}  // namespace

MatmulProgram::MatmulProgram(device::MatmulDesc desc, std::shared_ptr<StoreB> store)
    : desc_(std::move(desc)), store_(std::move(store)), form_(form_of(desc_)) {}

Result<std::shared_ptr<MatmulProgram>> MatmulProgram::create(const device::Image& image,
                                                             const device::PrepareOptions& options,
                                                             std::shared_ptr<StoreB> store) {
  CORELANE_ASSIGN(device::MatmulDesc desc, device::decode_matmul(image.bytes));
  CORELANE_ASSIGN(device::MatmulTensors tensors, device::describe(desc));
  CORELANE_TRY(check_options(desc, tensors, options));
  std::shared_ptr<MatmulProgram> program(new MatmulProgram(std::move(desc), std::move(store)));
  CORELANE_ASSIGN(program->b_bytes_, tensors.b.bytes());
  program->meaning_ = meaning_of(program->desc_, program->form_);
  program->profiled_ = options.profile_layers;
  program->inputs_ = {std::move(tensors.a), std::move(tensors.b)};
  program->outputs_ = {std::move(tensors.c)};
  return program;
}

/// Packed copies count for their first user, so that the sum over programs is right.
device::MemoryFigures MatmulProgram::memory() const {
  device::MemoryFigures figures;
  figures.weights = store_->bytes_counted_for(this);
  figures.internal = scratch_bytes.load(std::memory_order_relaxed);
  return figures;
}

Result<std::shared_ptr<device::KeptContent>> MatmulProgram::kept_content(
    std::size_t, const device::TensorRef& tensor) {
  using Kept = Result<std::shared_ptr<device::KeptContent>>;
  return no_throw("finding the packed copy of B", [&]() -> Kept { return shared_b(tensor); });
}

/// The entry of B that all programs of this device with the same memory and meaning share.
std::shared_ptr<SharedB> MatmulProgram::shared_b(const device::TensorRef& b) {
  return store_->use(key_of(b), this);
}

Result<device::Executable::Precompiled> MatmulProgram::export_precompiled() const {
  return error(Code::kUnsupported, "{} has no pre-compiled form: preparing it costs nothing",
               desc_.to_string());
}

}  // namespace corelane::drivers::virtual_npu
