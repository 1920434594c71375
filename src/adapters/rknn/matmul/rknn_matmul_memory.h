/// What matrix products need to know of memory: whether the bytes of packed copies have changed,
/// and how much each IOMMU domain holds. All functions from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "adapters/rknn/memory/rknn_memory.h"
#include "corelane/base/status.h"

namespace corelane::rknn {

/// While it lives, a sync to the device of any memory that shares one of these bytes counts as one
/// of `memory`: a block may be synchronised as a whole, and its slices be bound.
class Watch {
 public:
  Watch(std::shared_ptr<Memory> memory, std::size_t bytes);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  std::shared_ptr<Memory> memory_;
};
/// Counts one more sync to the device of `memory`, and of all that is watched and shares its bytes.
void note_written(Memory& memory);

/// Bytes of one domain: as much as 32 bits address.
inline constexpr std::uint64_t kDomainBytes = std::uint64_t{1} << 32;
/// Takes `bytes` from the domain of a matmul context for as long as the result lives; null for
/// other contexts, which have no domain. kOutOfMemory when the domain is full.
Result<std::shared_ptr<const void>> charge_domain(rknn_context ctx, std::uint64_t bytes);

}  // namespace corelane::rknn
