#include "tensor/tensor_pool.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/sync.h"

namespace corelane {

/// No call waits: where another thread is inside, memory comes from the heap and goes back to it.
/// So a child that was forked meanwhile does not wait for a thread that it does not have.
class TensorPool::Blocks {
 public:
  struct Block {
    std::shared_ptr<void> memory;
    std::size_t size = 0;
  };

  /// The smallest that fits; without memory where none does, or only one far too large.
  Block take(std::size_t size) {
    if (!mutex_.try_lock()) return {};
    Block taken;
    const auto end = idle_.begin() + static_cast<std::ptrdiff_t>(count_);
    auto best = end;
    for (auto block = idle_.begin(); block != end; ++block)
      if (block->size >= size && block->size - size <= size / kSpare &&
          (best == end || block->size < best->size))
        best = block;
    if (best != end) {
      taken = std::move(*best);
      std::move(best + 1, end, best);
      --count_;
      bytes_ -= taken.size;
    }
    mutex_.unlock();
    return taken;
  }
  /// Memory that is not kept is freed after the lock.
  void give_back(std::shared_ptr<void> memory, std::size_t size) noexcept {
    std::array<std::shared_ptr<void>, kMostIdleBlocks> dropped;
    if (size > kMostIdleBytes || !mutex_.try_lock()) return;
    std::size_t gone = 0;
    for (; count_ - gone == kMostIdleBlocks || bytes_ + size > kMostIdleBytes; ++gone) {
      dropped[gone] = std::move(idle_[gone].memory);
      bytes_ -= idle_[gone].size;
    }
    std::move(idle_.begin() + static_cast<std::ptrdiff_t>(gone),
              idle_.begin() + static_cast<std::ptrdiff_t>(count_), idle_.begin());
    count_ -= gone;
    idle_[count_++] = {std::move(memory), size};
    bytes_ += size;
    mutex_.unlock();
  }
  std::size_t bytes() {
    const MutexLock lock(mutex_);
    return bytes_;
  }

 private:
  Mutex mutex_{LockRank::kLeaf};
  /// The first `count_`, the one that was freed first in front.
  std::array<Block, kMostIdleBlocks> idle_ CORELANE_GUARDED_BY(mutex_);
  std::size_t count_ CORELANE_GUARDED_BY(mutex_) = 0;
  std::size_t bytes_ CORELANE_GUARDED_BY(mutex_) = 0;
};

TensorPool::TensorPool() : blocks_(std::make_shared<Blocks>()) {}

Result<Tensor> TensorPool::allocate(std::string name, DType dtype, Shape shape) {
  const auto size = storage_bytes(shape, dtype, {});
  if (!size || *size < kFrom) return Tensor::allocate(std::move(name), dtype, std::move(shape));
  auto [memory, capacity] = blocks_->take(*size);
  if (memory == nullptr) {
    CORELANE_ASSIGN(Tensor fresh, Tensor::allocate(name, dtype, shape));
    memory = std::move(fresh.data);
    capacity = *size;
  }
  void* const data = memory.get();
  // The last user of the tensor gives its memory back, where the pool still lives.
  std::shared_ptr<void> lent(data,
                             [memory = std::move(memory), capacity = capacity,
                              blocks = std::weak_ptr<Blocks>(blocks_)](void*) mutable noexcept {
                               if (const auto pool = blocks.lock())
                                 pool->give_back(std::move(memory), capacity);
                             });
  return Tensor{std::move(name), dtype, std::move(shape), {}, {}, std::move(lent), *size};
}

std::size_t TensorPool::idle_bytes() const { return blocks_->bytes(); }

}  // namespace corelane
