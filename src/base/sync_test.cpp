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

TEST(Sync, LowerRankMayBeTakenUnderAHigherOne) {
  Mutex high(kHigh);
  Mutex low(kLow);
  const MutexLock outer(high);
  const MutexLock inner(low);
}

TEST(SyncDeathTest, HigherRankUnderALowerOneIsCaughtInCheckingBuilds) {
#if defined(CORELANE_CHECK_LOCKS)
  EXPECT_DEATH(
      {
        Mutex high(kHigh);
        Mutex low(kLow);
        const MutexLock outer(low);
        const MutexLock inner(high);
      },
      "rank 201 is taken while one of rank 101 is held");
#else
  GTEST_SKIP() << "this build does not check ranks; the presets dev, asan, ubsan and tsan do";
#endif
}

TEST(SyncDeathTest, SameRankTwiceIsCaughtInCheckingBuilds) {
#if defined(CORELANE_CHECK_LOCKS)
  EXPECT_DEATH(
      {
        Mutex one(kLow);
        Mutex other(kLow);
        const MutexLock outer(one);
        const MutexLock inner(other);
      },
      "rank 101 is taken while one of rank 101 is held");
#else
  GTEST_SKIP() << "this build does not check ranks; the presets dev, asan, ubsan and tsan do";
#endif
}

}  // namespace
}  // namespace corelane
