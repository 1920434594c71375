#include "drivers/virtual/common/heap_growth.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "base/leaked.h"
#include "base/sync.h"

namespace corelane::drivers::virtual_npu {
namespace {

/// mallinfo2() walks over all free pieces, with the heap's locks held. From so many on that takes
/// longer than a small program takes to load.
constexpr std::size_t kMostPieces = 32768;
constexpr std::int64_t kExact = std::numeric_limits<std::int64_t>::min();

/// Pages of the process that no file backs, by /proc/self/statm (proc(5)); 0 where it cannot be
/// read.
std::int64_t private_bytes() noexcept {
  std::array<char, 128> text{};
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t size = read(fd, text.data(), text.size() - 1);
  close(fd);
  if (size <= 0) return 0;
  char* at = text.data();
  std::strtoll(at, &at, 10);  // The size of the address space.
  const std::int64_t resident = std::strtoll(at, &at, 10);
  const std::int64_t shared = std::strtoll(at, &at, 10);
  return (resident - shared) * sysconf(_SC_PAGESIZE);
}

struct Meter {
  Mutex mutex{LockRank::kLeaf};
  std::vector<double*> shares CORELANE_GUARDED_BY(mutex);
  std::size_t last CORELANE_GUARDED_BY(mutex) = 0;

  /// Gives every share its part of the growth since the last call.
  void divide() CORELANE_REQUIRES(mutex) {
    const std::size_t now = heap_bytes();
    const double grown = static_cast<double>(now) - static_cast<double>(last);
    for (double* share : shares) *share += grown / static_cast<double>(shares.size());
    last = now;
  }
};

Meter& meter() {
  static Leaked<Meter> meter;
  return *meter;
}

}  // namespace

/// In use, in arenas and in blocks that were mapped one by one. Once the heap is in many pieces:
/// as much as then, and what the process's pages have grown by since.
std::size_t heap_bytes() {
  static std::atomic<std::int64_t> beside_pages{kExact};
  std::int64_t beside = beside_pages.load(std::memory_order_acquire);
  if (beside != kExact)
    return static_cast<std::size_t>(std::max<std::int64_t>(0, beside + private_bytes()));
  const auto info = mallinfo2();
  const std::size_t bytes = info.uordblks + info.hblkhd;
  if (info.ordblks + info.smblks > kMostPieces)
    // The first one counts, where two threads find it.
    beside_pages.compare_exchange_strong(beside,
                                         static_cast<std::int64_t>(bytes) - private_bytes());
  return bytes;
}

HeapGrowth::HeapGrowth() {
  Meter& m = meter();
  const MutexLock lock(m.mutex);
  m.divide();
  m.shares.push_back(&share_);
}

HeapGrowth::~HeapGrowth() {
  Meter& m = meter();
  const MutexLock lock(m.mutex);
  m.divide();
  std::erase(m.shares, &share_);
}

std::size_t HeapGrowth::bytes() const {
  Meter& m = meter();
  const MutexLock lock(m.mutex);
  m.divide();
  return share_ > 0 ? static_cast<std::size_t>(share_) : 0;
}

}  // namespace corelane::drivers::virtual_npu
