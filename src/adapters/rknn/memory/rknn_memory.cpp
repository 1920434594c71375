#include "adapters/rknn/memory/rknn_memory.h"

#include <sys/stat.h>

#include <deque>
#include <unordered_map>
#include <utility>

#include "adapters/rknn/checks/rknn_check.h"
#include "base/leaked.h"
#include "base/sync.h"

namespace corelane::rknn {
namespace {

/// How many structs wait before one is used again: the quarantine in which stale pointers are
/// detected.
constexpr std::size_t kQuarantine = 1024;

struct Pool {
  Mutex mutex{LockRank::kLeaf};
  std::deque<rknn_tensor_mem> structs CORELANE_GUARDED_BY(mutex);
  std::deque<rknn_tensor_mem*> free CORELANE_GUARDED_BY(mutex);
  std::unordered_map<const rknn_tensor_mem*, std::shared_ptr<Memory>> live
      CORELANE_GUARDED_BY(mutex);
};

// Never destroyed: programs may leave memory at exit that other threads use.
Pool& pool() {
  static Leaked<Pool> pool;
  return *pool;
}

/// The system's numbers of the block: a descriptor may be duplicated, and mapped more than once.
Memory::Block block_of(const Memory& memory, int fd, std::int32_t offset) {
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0)
    return {.offset = reinterpret_cast<std::uintptr_t>(memory.data)};
  return {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino),
          static_cast<std::uint64_t>(offset)};
}

/// Only addresses are compared: `mem` may point anywhere.
Failure unknown_memory(const Pool& pool, const rknn_tensor_mem* mem) CORELANE_REQUIRES(pool.mutex) {
  if (mem == nullptr)
    return error(
        Code::kInvalidArgument,
        "mem is null; pass what rknn_create_mem or another rknn_create_mem* function gave");
  for (const rknn_tensor_mem& known : pool.structs)
    if (&known == mem)
      return error(Code::kInvalidArgument,
                   "mem {} was destroyed; do not use it after rknn_destroy_mem",
                   static_cast<const void*>(mem));
  return error(Code::kInvalidArgument,
               "mem {} was not allocated by this library; pass the pointer that rknn_create_mem "
               "gave, not a copy of what it points to",
               static_cast<const void*>(mem));
}

}  // namespace

/// Structs are reused oldest first, and only beyond the quarantine.
rknn_tensor_mem* publish_memory(std::shared_ptr<Memory> memory, int fd, std::int32_t offset,
                                void* virt_addr, std::uint32_t size) {
  memory->block = block_of(*memory, fd, offset);
  check::memory_made(*memory);
  Pool& p = pool();
  const MutexLock lock(p.mutex);
  rknn_tensor_mem* mem = nullptr;
  if (p.free.size() > kQuarantine) {
    mem = p.free.front();
    p.free.pop_front();
  } else {
    mem = &p.structs.emplace_back();
  }
  *mem = {};
  mem->virt_addr = virt_addr;
  mem->fd = fd;
  mem->offset = offset;
  mem->size = size;
  mem->flags = memory->flags;
  mem->priv_data = memory.get();
  p.live.emplace(mem, std::move(memory));
  return mem;
}

Result<std::shared_ptr<Memory>> find_memory(const rknn_tensor_mem* mem) {
  Pool& p = pool();
  const MutexLock lock(p.mutex);
  const auto found = p.live.find(mem);
  if (found == p.live.end()) return unknown_memory(p, mem);
  return found->second;
}

/// The struct is emptied under the lock; the memory goes after it, or with the last context that
/// has it bound.
Status destroy_memory(rknn_tensor_mem* mem) {
  Pool& p = pool();
  std::shared_ptr<Memory> memory;
  {
    const MutexLock lock(p.mutex);
    const auto found = p.live.find(mem);
    if (found == p.live.end()) return unknown_memory(p, mem);
    memory = std::move(found->second);
    memory->destroyed.store(true, std::memory_order_release);
    p.live.erase(found);
    *mem = {};
    mem->fd = -1;
    p.free.push_back(mem);
  }
  check::memory_gone(*memory);
  return {};
}

std::size_t live_memories(rknn_context owner) {
  Pool& p = pool();
  const MutexLock lock(p.mutex);
  if (owner == 0) return p.live.size();
  std::size_t count = 0;
  for (const auto& [mem, memory] : p.live) count += memory->owner == owner ? 1 : 0;
  return count;
}

Result<std::shared_ptr<Memory>> allocate_memory(std::size_t size, device::Cache cache) {
  auto memory = std::make_shared<Memory>();
  CORELANE_ASSIGN(memory->buffer, device::create_host_buffer(size, {.cache = cache}));
  memory->data = memory->buffer->data();
  memory->size = size;
  return memory;
}

}  // namespace corelane::rknn
