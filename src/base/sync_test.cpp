#include "base/sync.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

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

/// It looks for a moment whether the mutex is released; the other one keeps it beyond that.
TEST(Sync, MutexThatAnotherThreadHasIsTakenOnceItIsReleased) {
  Guarded guarded;
  std::atomic<bool> comes{false};
  std::thread other;
  {
    const MutexLock lock(guarded.mutex);
    other = std::thread([&] {
      comes.store(true);
      comes.notify_one();
      MutexLock late(guarded.mutex);
      EXPECT_TRUE(late.native().owns_lock());
      EXPECT_EQ(guarded.value, 1000);
    });
    comes.wait(false);
    for (int i = 0; i < 1000; ++i) {
      ++guarded.value;
      std::this_thread::yield();
    }
  }
  other.join();
}

TEST(Sync, ThreadsThatTakeOneMutexInTurnsLoseNothing) {
  constexpr int kThreads = 4;
  constexpr int kTurns = 20000;
  Guarded guarded;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        const MutexLock lock(guarded.mutex);
        ++guarded.value;
      }
    });
  for (std::thread& thread : threads) thread.join();
  const MutexLock lock(guarded.mutex);
  EXPECT_EQ(guarded.value, kThreads * kTurns);
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
