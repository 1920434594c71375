#include "adapters/rknn/matmul/rknn_matmul_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>

#include "adapters/rknn/matmul/rknn_matmul.h"
#include "base/leaked.h"
#include "base/sync.h"

namespace corelane::rknn {
namespace {

/// A byte of a block of memory, the same wherever the block is mapped.
using Place = Memory::Block;

Place end_of(Place place, std::uint64_t bytes) {
  place.offset += bytes;
  return place;
}

struct Watched {
  const Watch* owner;  ///< Several contexts may watch one memory.
  Memory* memory;
  std::uint64_t bytes;
};

struct Watches {
  Mutex mutex{LockRank::kLeaf};
  std::multimap<Place, Watched> by_place CORELANE_GUARDED_BY(mutex);
  std::uint64_t longest CORELANE_GUARDED_BY(mutex) = 0;  ///< Of all there ever were.
  std::atomic<std::size_t> count{0};
};

// Never destroyed: contexts may be left at exit.
Watches& watches() {
  static Leaked<Watches> watches;
  return *watches;
}

/// Bytes held, for each domain.
std::array<std::atomic<std::uint64_t>, kMatmulDomains>& domains() {
  static std::array<std::atomic<std::uint64_t>, kMatmulDomains> bytes{};
  return bytes;
}

}  // namespace

Watch::Watch(std::shared_ptr<Memory> memory, std::size_t bytes) : memory_(std::move(memory)) {
  Watches& w = watches();
  const MutexLock lock(w.mutex);
  w.by_place.emplace(memory_->block, Watched{this, memory_.get(), bytes});
  w.longest = std::max<std::uint64_t>(w.longest, bytes);
  w.count.fetch_add(1, std::memory_order_relaxed);
}

Watch::~Watch() {
  Watches& w = watches();
  const MutexLock lock(w.mutex);
  auto [at, end] = w.by_place.equal_range(memory_->block);
  while (at != end && at->second.owner != this) ++at;
  if (at == end) return;
  w.by_place.erase(at);
  w.count.fetch_sub(1, std::memory_order_relaxed);
}

void note_written(Memory& memory) {
  memory.writes.fetch_add(1, std::memory_order_acq_rel);
  Watches& w = watches();
  if (w.count.load(std::memory_order_relaxed) == 0) return;
  const Place begin = memory.block;
  const Place end = end_of(begin, memory.size);
  const MutexLock lock(w.mutex);
  Place first = begin;
  first.offset -= std::min(first.offset, w.longest);
  for (auto at = w.by_place.lower_bound(first); at != w.by_place.end() && at->first < end; ++at) {
    const Watched& watched = at->second;
    if (watched.memory != &memory && begin < end_of(at->first, watched.bytes))
      watched.memory->writes.fetch_add(1, std::memory_order_acq_rel);
  }
}

Result<std::shared_ptr<const void>> charge_domain(rknn_context ctx, std::uint64_t bytes) {
  const std::shared_ptr<Handle> handle = find_handle(ctx);
  if (handle == nullptr || handle->kind() != HandleKind::kMatmul) return nullptr;
  const std::int32_t domain = static_cast<const MatmulContext&>(*handle).domain();
  std::atomic<std::uint64_t>& held = domains()[static_cast<std::size_t>(domain)];
  const std::uint64_t before = held.fetch_add(bytes, std::memory_order_relaxed);
  if (before + bytes > kDomainBytes) {
    held.fetch_sub(bytes, std::memory_order_relaxed);
    return error(Code::kOutOfMemory,
                 "IOMMU domain {} holds {} bytes, and {} more do not fit in its {}; create the "
                 "product with another iommu_domain_id (0 to {}), or destroy memory",
                 domain, before, bytes, kDomainBytes, kMatmulDomains - 1);
  }
  return std::shared_ptr<const void>(
      &held, [&held, bytes](const void*) { held.fetch_sub(bytes, std::memory_order_relaxed); });
}

}  // namespace corelane::rknn
