#include "drivers/virtual/common/heap_growth.h"

#include <malloc.h>

#include <algorithm>
#include <vector>

#include "base/leaked.h"
#include "base/sync.h"

namespace corelane::drivers::virtual_npu {
namespace {

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

/// In use, in arenas and in blocks that were mapped one by one.
std::size_t heap_bytes() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
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
