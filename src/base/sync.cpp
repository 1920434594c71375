#include "base/sync.h"

#if defined(CORELANE_CHECK_LOCKS)

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace corelane::detail {
namespace {

/// The ranks that this thread holds, in the order in which it took them.
thread_local std::vector<LockRank> held;

}  // namespace

void note_lock(LockRank rank) noexcept {
  if (rank == LockRank::kUnranked) return;
  for (const LockRank other : held) {
    if (other <= rank) {
      // A broken order is a defect; only debug builds check for it, and they stop here.
      std::fprintf(stderr, "corelane: a mutex of rank %u is taken while one of rank %u is held\n",
                   static_cast<unsigned>(rank), static_cast<unsigned>(other));
      std::abort();
    }
  }
  held.push_back(rank);
}

void note_unlock(LockRank rank) noexcept {
  const auto last = std::find(held.rbegin(), held.rend(), rank);
  if (last != held.rend()) held.erase(std::next(last).base());
}

}  // namespace corelane::detail

#endif
