/// Memory of results that comes back when their users let them go.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "corelane/base/status.h"
#include "corelane/tensor/tensor.h"

namespace corelane {

/// A result of some megabytes costs a page fault for each page when its memory is fresh from the
/// system. This pool keeps what users have freed for the next result of about the size. Any thread.
/// Tensors may outlive the pool, and be freed in any thread.
class TensorPool {
 public:
  /// Smaller tensors come from the heap, which keeps their memory itself.
  static constexpr std::size_t kFrom = std::size_t{64} << 10;
  /// What the pool keeps at most for later; the oldest goes first.
  static constexpr std::size_t kMostIdleBytes = std::size_t{64} << 20;
  static constexpr std::size_t kMostIdleBlocks = 16;
  /// A tensor may get memory that is larger by this part of its size: where shapes vary, as widths
  /// of text do, hardly two results have the same one.
  static constexpr std::size_t kSpare = 2;

  TensorPool();
  /// As Tensor::allocate().
  Result<Tensor> allocate(std::string name, DType dtype, Shape shape);
  /// Bytes that nobody uses now.
  std::size_t idle_bytes() const;

 private:
  class Blocks;
  std::shared_ptr<Blocks> blocks_;
};

}  // namespace corelane
