#include "corelane/tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace corelane {
namespace {

// Tensors that users keep come from the heap, not from the device: a buffer with a descriptor takes
// some 20 us and a page fault for each page, in every run (runtime/context/own_memory.h).
constexpr std::align_val_t kAlignment{64};

/// Not zeroed: each tensor is written as a whole. One byte at least, so that no data is null.
Result<std::shared_ptr<void>> block_of(const std::string& name, const Shape& shape,
                                       std::size_t bytes) {
  void* block = ::operator new(std::max<std::size_t>(bytes, 1), kAlignment, std::nothrow);
  if (block != nullptr)
    return std::shared_ptr<void>(block, [](void* p) { ::operator delete(p, kAlignment); });
  return error(Code::kOutOfMemory, "tensor '{}' {} needs {} bytes, which the system refused", name,
               shape.to_string(), bytes);
}

}  // namespace

Result<Tensor> Tensor::allocate(std::string name, DType dtype, Shape shape) {
  CORELANE_ASSIGN(const std::size_t bytes, storage_bytes(shape, dtype, {}));
  CORELANE_ASSIGN(auto block, block_of(name, shape, bytes));
  return Tensor{std::move(name), dtype, std::move(shape), {}, {}, std::move(block), bytes, {}};
}

Result<Tensor> Tensor::copy_of(std::string name, const TensorView& view) {
  CORELANE_ASSIGN(const std::size_t bytes, storage_bytes(view.shape, view.dtype, view.layout));
  if (view.size < bytes || (view.data == nullptr && bytes > 0)) {
    return error(Code::kInvalidArgument, "tensor '{}' {} takes {} bytes, {} were given", name,
                 view.shape.to_string(), bytes, view.data == nullptr ? 0 : view.size);
  }
  CORELANE_ASSIGN(auto block, block_of(name, view.shape, bytes));
  if (bytes > 0) std::memcpy(block.get(), view.data, bytes);
  return Tensor{std::move(name), view.dtype,       view.shape, view.layout,
                view.quant,      std::move(block), bytes,      {}};
}

}  // namespace corelane
