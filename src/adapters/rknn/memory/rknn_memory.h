/// Memory objects: what a rknn_tensor_mem stands for.
///
/// The public structs live in blocks that are never given back to the system, so that one that was
/// destroyed is recognised without reading freed memory. Any thread; one caller at a time per
/// object.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "corelane/base/status.h"
#include "corelane/device/buffer.h"
#include "rknn_api.h"

namespace corelane::rknn {

/// The memory of one rknn_tensor_mem. Contexts it is bound to hold it, so it outlives its struct
/// there.
struct Memory {
  void* data = nullptr;  ///< Where the tensor begins.
  std::size_t size = 0;  ///< Bytes from there on.
  /// The device's object; null for an address that only the caller knows.
  std::shared_ptr<device::Buffer> buffer;
  std::size_t buffer_offset = 0;  ///< Of `data` in it.
  /// Which block of the system `data` lies in and where, by its descriptor: the same for each
  /// mapping of it. Without one, the address, in the block 0, 0.
  struct Block {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t offset = 0;
    auto operator<=>(const Block&) const = default;
  } block;
  rknn_context owner = 0;
  std::shared_ptr<const void> charge;  ///< What it takes from an IOMMU domain; null for none.
  std::uint32_t flags = 0;             ///< rknn_tensor_mem_flags.
  bool uncached = false;               ///< Made past the CPU's caches, so that it needs no syncs.
  /// Counts the syncs to the device: copies made of the content are old when it has changed.
  std::atomic<std::uint64_t> writes{0};
  std::atomic<bool> destroyed{false};  ///< Its struct went; contexts may still hold it.
};

/// A struct for `memory`, its members filled in.
rknn_tensor_mem* publish_memory(std::shared_ptr<Memory> memory, int fd, std::int32_t offset,
                                void* virt_addr, std::uint32_t size);
/// What a struct stands for; kInvalidArgument for null, one that was destroyed, or one that this
/// library did not allocate.
Result<std::shared_ptr<Memory>> find_memory(const rknn_tensor_mem* mem);
/// Takes the struct back; same failures.
Status destroy_memory(rknn_tensor_mem* mem);
/// Structs that live now, those of `owner` only unless it is 0.
std::size_t live_memories(rknn_context owner);
/// A new block with a descriptor (memfd) that other contexts and processes can map, as every device
/// of the CPU uses it.
Result<std::shared_ptr<Memory>> allocate_memory(std::size_t size, device::Cache cache);

}  // namespace corelane::rknn
