#include "corelane/tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace corelane {
namespace {

// Tensors that users keep come from the heap, not from the device: a buffer with a descriptor takes
// some 20 us and a page fault for each page, in every run (runtime/context/own_memory.h).
constexpr std::size_t kAlignment = 64;
/// Up to here memory and its counter are one allocation, which is quicker than aligned memory.
constexpr std::size_t kSmallBytes = 4096;

/// Not zeroed: each tensor is written as a whole. One byte at least, so that no data is null.
std::shared_ptr<void> new_block(std::size_t bytes) {
  if (bytes <= kSmallBytes) {
    std::size_t space = std::max<std::size_t>(bytes, 1) + kAlignment - 1;
    auto memory = std::make_shared_for_overwrite<std::byte[]>(space);
    void* begin = memory.get();
    begin = std::align(kAlignment, std::max<std::size_t>(bytes, 1), begin, space);
    return {std::move(memory), begin};
  }
  constexpr std::align_val_t kAlign{kAlignment};
  return {::operator new(bytes, kAlign), [](void* p) { ::operator delete(p, kAlign); }};
}

Result<std::shared_ptr<void>> block_of(const std::string& name, const Shape& shape,
                                       std::size_t bytes) {
  try {
    return new_block(bytes);
  } catch (const std::bad_alloc&) {
    return error(Code::kOutOfMemory, "tensor '{}' {} needs {} bytes, which the system refused",
                 name, shape.to_string(), bytes);
  }
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
