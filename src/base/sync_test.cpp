#include "base/sync.h"

#include <gtest/gtest.h>

namespace corelane {
namespace {

constexpr auto kLow = static_cast<LockRank>(101);
constexpr auto kHigh = static_cast<LockRank>(201);

struct Guarded {
  Mutex mutex{kLow};
  int value CORELANE_GUARDED_BY(mutex) = 0;
};

TEST(Sync, LockIsHeldBetweenLockAndUnlock) {
  Guarded guarded;
  MutexLock lock(guarded.mutex);
  guarded.value = 1;
  EXPECT_TRUE(lock.native().owns_lock());
  lock.unlock();
  EXPECT_FALSE(lock.native().owns_lock());
  lock.lock();
  EXPECT_EQ(guarded.value, 1);
}

/// Takes two mutexes of these ranks, one under the other.
void take(LockRank outer, LockRank inner) {
  Mutex first(outer);
  Mutex second(inner);
  const MutexLock outer_lock(first);
  const MutexLock inner_lock(second);
}

TEST(Sync, LowerRankMayBeTakenUnderAHigherOne) { take(kHigh, kLow); }

TEST(SyncDeathTest, WrongOrderOfRanksIsCaughtInCheckingBuilds) {
#if defined(CORELANE_CHECK_LOCKS)
  EXPECT_DEATH(take(kLow, kHigh), "rank 201 is taken while one of rank 101 is held");
  EXPECT_DEATH(take(kLow, kLow), "rank 101 is taken while one of rank 101 is held");
#else
  static_cast<void>(take);
  GTEST_SKIP() << "this build does not check ranks; the presets dev, asan and tsan do";
#endif
}

}  // namespace
}  // namespace corelane
