/// Memory of the caller for weights and activations: RKNN_FLAG_MEM_ALLOC_OUTSIDE and
/// RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE.
///
/// Weight memory holds the whole program, from where it is read in place. Activation memory is
/// checked and held; the device decides whether it computes there (the virtual NPU does not).
#pragma once

#include <cstdint>
#include <memory>

#include "adapters/rknn/memory/rknn_memory.h"
#include "corelane/base/bytes.h"
#include "corelane/base/status.h"

namespace corelane::rknn {

/// What a context has of such memory. Ordered by the context's lock.
struct OutsideMemory {
  std::shared_ptr<const ByteVector> pending;  ///< The program, until rknn_set_weight_mem.
  std::shared_ptr<Memory> weights;            ///< Null: the library's own, or none yet.
  std::shared_ptr<Memory> internal;

  /// kWrongState with what is missing, where a context of these flags cannot run.
  Status ready(std::uint32_t flags) const;
  /// kWrongState where it never can: it was made for its sizes alone. Shapes and memory are set
  /// before the weights are there.
  static Status check_use(std::uint32_t flags);
  /// The program of `bytes` bytes, into the weight memory `to`: from `pending`, or from the weight
  /// memory there was. kOutOfRange where `to` is too small or overlaps that one, kWrongState where
  /// the program is gone.
  Status copy_program(Memory& to, std::size_t bytes) const;
};

}  // namespace corelane::rknn
