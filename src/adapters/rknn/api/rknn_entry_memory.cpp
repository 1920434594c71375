/// The memory functions of rknn_api.h. They take contexts of models and of matrix products alike.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "adapters/rknn/api/rknn_edge.h"
#include "adapters/rknn/api/rknn_handle.h"
#include "adapters/rknn/api/rknn_log.h"
#include "adapters/rknn/matmul/rknn_matmul_memory.h"
#include "adapters/rknn/memory/rknn_memory.h"
#include "base/process/errno_text.h"

namespace corelane::rknn {
namespace {

/// Any kind of context: memory belongs to the device, and is only counted for the context.
Outcome check_context(std::optional<rknn_context> ctx) {
  if (Status forked = check_process(); !forked.ok()) return {RKNN_ERR_DEVICE_UNAVAILABLE, forked};
  if (ctx && find_handle(*ctx) == nullptr) return {RKNN_ERR_CTX_INVALID, stale_handle(*ctx)};
  return {};
}

/// The frame of a function that makes memory, for `ctx` where it has one: null after a line with
/// the reason.
template <class Body>
rknn_tensor_mem* memory_for(const char* function, std::optional<rknn_context> ctx,
                            Body&& body) noexcept {
  rknn_tensor_mem* memory = nullptr;
  (void)guard(function, [&]() -> Outcome {
    if (Outcome bad = check_context(ctx); bad.code() != RKNN_SUCC) return bad;
    CORELANE_ASSIGN(memory, body());
    return {};
  });
  return memory;
}

/// `charge` first: memory that does not fit its domain is not allocated.
Result<rknn_tensor_mem*> create(rknn_context ctx, std::uint64_t size, device::Cache cache) {
  if (size == 0 || size > UINT32_MAX)
    return error(Code::kInvalidArgument,
                 "size {} is not within 1 and {}; take it from rknn_query (size_with_stride, "
                 "total_internal_size)",
                 size, UINT32_MAX);
  CORELANE_ASSIGN(std::shared_ptr<const void> charge, charge_domain(ctx, size));
  CORELANE_ASSIGN(std::shared_ptr<Memory> memory,
                  allocate_memory(static_cast<std::size_t>(size), cache));
  memory->charge = std::move(charge);
  memory->owner = ctx;
  memory->uncached = cache == device::Cache::kUncached;
  memory->flags = RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE;
  const int fd = memory->buffer->fd();
  void* const data = memory->data;
  return publish_memory(std::move(memory), fd, 0, data, static_cast<std::uint32_t>(size));
}

/// Bytes of the block that a descriptor stands for; 0 where the system does not know.
std::uint64_t block_size(int fd, const struct stat& info) {
  if (info.st_size > 0) return static_cast<std::uint64_t>(info.st_size);
  // The size of a DMA buffer is found by seeking to its end. The position is shared with the
  // caller, so it is put back.
  const off_t place = lseek(fd, 0, SEEK_CUR);
  const off_t end = lseek(fd, 0, SEEK_END);
  if (place >= 0) lseek(fd, place, SEEK_SET);
  return end > 0 ? static_cast<std::uint64_t>(end) : 0;
}

/// With an address of the caller the block is not mapped again, and only that address is used.
Result<rknn_tensor_mem*> create_from_fd(rknn_context ctx, std::int32_t fd, void* virt_addr,
                                        std::uint32_t size, std::int32_t offset) {
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0)
    return error(Code::kInvalidArgument, "fd {} is not an open descriptor: {}", fd,
                 errno_text(fd < 0 ? EBADF : errno));
  if (offset < 0 || size == 0)
    return error(Code::kInvalidArgument,
                 "offset {} and size {}: the offset is 0 or more, the size 1 "
                 "or more",
                 offset, size);
  const std::uint64_t block = block_size(fd, info);
  std::uint64_t usable = size;
  if (block != 0) {
    if (static_cast<std::uint64_t>(offset) >= block)
      return error(Code::kOutOfRange, "offset {} lies past the {} bytes of fd {}", offset, block,
                   fd);
    // Callers pass the tensor's size or that of the whole block.
    const std::uint64_t rest = block - static_cast<std::uint64_t>(offset);
    if (size > rest && size != block)
      return error(Code::kOutOfRange, "{} bytes at offset {} reach beyond the {} bytes of fd {}",
                   size, offset, block, fd);
    usable = std::min<std::uint64_t>(usable, rest);
  }
  auto memory = std::make_shared<Memory>();
  memory->owner = ctx;
  memory->flags = RKNN_TENSOR_MEMORY_FLAGS_FROM_FD;
  memory->size = static_cast<std::size_t>(usable);
  void* base = virt_addr;
  if (virt_addr != nullptr) {
    memory->data = static_cast<char*>(virt_addr) + offset;
  } else {
    // From the block's beginning: virt_addr is the caller's to use, as offset is.
    memory->buffer_offset = static_cast<std::size_t>(offset);
    CORELANE_ASSIGN(memory->buffer,
                    device::import_fd_buffer(fd, memory->buffer_offset + memory->size, 0));
    base = memory->buffer->data();
    memory->data = static_cast<char*>(base) + offset;
  }
  return publish_memory(std::move(memory), fd, offset, base, size);
}

/// Devices here have no physical addresses: the block is used at the caller's virtual address.
Result<rknn_tensor_mem*> create_from_phys(rknn_context ctx, std::uint64_t phys_addr,
                                          void* virt_addr, std::uint32_t size) {
  if (virt_addr == nullptr)
    return error(Code::kUnsupported,
                 "physical address {:#x} cannot be reached from this device, which has none; pass "
                 "the block's virt_addr too, or use rknn_create_mem, or rknn_create_mem_from_fd "
                 "with the descriptor of the block",
                 phys_addr);
  if (size == 0)
    return error(Code::kInvalidArgument,
                 "size is 0; pass the bytes of the block at virt_addr, 1 or more");
  log::line(log::Level::kWarn,
            "rknn_create_mem_from_phys: physical address {:#x} is not looked at; the {} bytes at "
            "virt_addr are used",
            phys_addr, size);
  auto memory = std::make_shared<Memory>();
  memory->owner = ctx;
  memory->flags = RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS;
  memory->size = size;
  memory->data = virt_addr;
  return publish_memory(std::move(memory), -1, 0, virt_addr, size);
}

}  // namespace

RKNN_EXPORT rknn_tensor_mem* rknn_create_mem(rknn_context ctx, uint32_t size) {
  return memory_for(__func__, ctx, [&]() -> Result<rknn_tensor_mem*> {
    return create(ctx, size, device::Cache::kCacheable);
  });
}

RKNN_EXPORT rknn_tensor_mem* rknn_create_mem2(rknn_context ctx, uint64_t size,
                                              uint64_t alloc_flags) {
  const bool alone = (alloc_flags & RKNN_MEM_FLAG_ALLOC_NO_CONTEXT) != 0;
  return memory_for(
      __func__, alone ? std::nullopt : std::optional(ctx), [&]() -> Result<rknn_tensor_mem*> {
        constexpr std::uint64_t kKnown =
            RKNN_FLAG_MEMORY_CACHEABLE | RKNN_FLAG_MEMORY_NON_CACHEABLE |
            RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM | RKNN_MEM_FLAG_ALLOC_NO_CONTEXT;
        if ((alloc_flags & ~kKnown) != 0)
          return error(Code::kInvalidArgument,
                       "alloc_flags {:#x} has bits that are not known: {:#x}", alloc_flags,
                       alloc_flags & ~kKnown);
        const bool uncached = (alloc_flags & RKNN_FLAG_MEMORY_NON_CACHEABLE) != 0;
        return create(ctx, size, uncached ? device::Cache::kUncached : device::Cache::kCacheable);
      });
}

RKNN_EXPORT rknn_tensor_mem* rknn_create_mem_from_fd(rknn_context ctx, int32_t fd, void* virt_addr,
                                                     uint32_t size, int32_t offset) {
  return memory_for(__func__, ctx, [&]() -> Result<rknn_tensor_mem*> {
    return create_from_fd(ctx, fd, virt_addr, size, offset);
  });
}

RKNN_EXPORT rknn_tensor_mem* rknn_create_mem_from_phys(rknn_context ctx, uint64_t phys_addr,
                                                       void* virt_addr, uint32_t size) {
  return memory_for(__func__, ctx, [&]() -> Result<rknn_tensor_mem*> {
    return create_from_phys(ctx, phys_addr, virt_addr, size);
  });
}

RKNN_EXPORT rknn_tensor_mem* rknn_create_mem_from_mb_blk(rknn_context ctx, void*, int32_t) {
  return memory_for(__func__, ctx, [&]() -> Result<rknn_tensor_mem*> {
    return error(Code::kUnsupported,
                 "blocks of the media library are not known here; use rknn_create_mem_from_fd with "
                 "the block's descriptor");
  });
}

RKNN_EXPORT int rknn_destroy_mem(rknn_context ctx, rknn_tensor_mem* mem) {
  return guard(__func__, [&]() -> Outcome {
    // Memory may outlive its context and needs none; a wrong context is still reported.
    CORELANE_TRY(check_process());
    CORELANE_TRY(destroy_memory(mem));
    if (ctx == 0) return {};
    if (find_handle(ctx) == nullptr)
      return {RKNN_ERR_CTX_INVALID, stale_handle(ctx).wrap("the memory was freed nevertheless")};
    return {};
  });
}

RKNN_EXPORT int rknn_mem_sync(rknn_context context, rknn_tensor_mem* mem, rknn_mem_sync_mode mode) {
  return guard(__func__, [&]() -> Outcome {
    CORELANE_TRY(check_process());
    if (context != 0 && find_handle(context) == nullptr)
      return {RKNN_ERR_CTX_INVALID, stale_handle(context)};
    const auto number = static_cast<std::uint32_t>(mode);
    if (number < RKNN_MEMORY_SYNC_TO_DEVICE || number > RKNN_MEMORY_SYNC_BIDIRECTIONAL)
      return outcome(RKNN_ERR_PARAM_INVALID,
                     "mode {} does not exist; use 1 (to the device), 2 (from it) or 3 (both)",
                     number);
    CORELANE_ASSIGN(const std::shared_ptr<Memory> memory, find_memory(mem));
    check::synced(*memory, mode);
    if ((number & RKNN_MEMORY_SYNC_TO_DEVICE) != 0) note_written(*memory);
    if (memory->buffer == nullptr) return {};
    return memory->buffer->sync(static_cast<device::SyncDirection>(number), memory->buffer_offset,
                                memory->size);
  });
}

/// The name of rknn_destroy_mem in headers before 1.3.0.
RKNN_EXPORT int rknn_destory_mem(rknn_context ctx, rknn_tensor_mem* mem) {
  return rknn_destroy_mem(ctx, mem);
}

}  // namespace corelane::rknn
