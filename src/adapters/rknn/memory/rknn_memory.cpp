#include "adapters/rknn/memory/rknn_memory.h"

#include <sys/stat.h>

#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "adapters/rknn/checks/rknn_check.h"
#include "base/leaked.h"

namespace corelane::rknn {
namespace {

/// How many structs wait before one is used again: a stale pointer is told for that long.
constexpr std::size_t kQuarantine = 1024;

struct Pool {
  std::mutex mutex;
  std::deque<rknn_tensor_mem> structs;
  std::deque<rknn_tensor_mem*> free;
  std::unordered_map<const rknn_tensor_mem*, std::shared_ptr<Memory>> live;
};

Pool& pool() {
  static Leaked<Pool> pool;
  return *pool;
}

Memory::Block block_of(const Memory& memory, int fd, std::int32_t offset) {
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0)
    return {.offset = reinterpret_cast<std::uintptr_t>(memory.data)};
  return {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino),
          static_cast<std::uint64_t>(offset)};
}

Status unknown_memory(const Pool& pool, const rknn_tensor_mem* mem) {
  if (mem == nullptr)
    return error(Code::kInvalidArgument,
                 "mem is null; pass what rknn_create_mem or one of its kin gave");
  for (const rknn_tensor_mem& known : pool.structs)
    if (&known == mem)
      return error(Code::kInvalidArgument,
                   "mem {} was destroyed; do not use it after rknn_destroy_mem",
                   static_cast<const void*>(mem));
  return error(Code::kInvalidArgument,
               "mem {} is none of this library; pass the pointer that rknn_create_mem gave, not "
               "a copy of what it points to",
               static_cast<const void*>(mem));
}

}  // namespace

rknn_tensor_mem* publish_memory(std::shared_ptr<Memory> memory, int fd, std::int32_t offset,
                                void* virt_addr, std::uint32_t size) {
  memory->block = block_of(*memory, fd, offset);
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
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
  check::memory_made(*memory);
  p.live.emplace(mem, std::move(memory));
  return mem;
}

Result<std::shared_ptr<Memory>> find_memory(const rknn_tensor_mem* mem) {
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  const auto found = p.live.find(mem);
  if (found == p.live.end()) return error(unknown_memory(p, mem));
  return found->second;
}

Status destroy_memory(rknn_tensor_mem* mem) {
  Pool& p = pool();
  std::shared_ptr<Memory> memory;  // Given back after the lock.
  const std::lock_guard lock(p.mutex);
  const auto found = p.live.find(mem);
  if (found == p.live.end()) return unknown_memory(p, mem);
  memory = std::move(found->second);
  check::memory_gone(*memory);
  memory->destroyed.store(true, std::memory_order_release);
  p.live.erase(found);
  *mem = {};
  mem->fd = -1;
  p.free.push_back(mem);
  return {};
}

std::size_t live_memories(rknn_context owner) {
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
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
