/// Mutexes that clang checks at compile time (-Wthread-safety) and that check their rank at run
/// time in builds with CORELANE_CHECK_LOCKS.
///
/// Annotate what a mutex guards with CORELANE_GUARDED_BY, and functions that expect the lock with
/// CORELANE_REQUIRES. The attributes: https://clang.llvm.org/docs/ThreadSafetyAnalysis.html.
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/lock_rank.h"
#include "corelane/base/api.h"

#if defined(__clang__)
#define CORELANE_THREAD_ATTRIBUTE_(x) __attribute__((x))
#else
#define CORELANE_THREAD_ATTRIBUTE_(x)
#endif
/// The mutex that must be held to read or write this member.
#define CORELANE_GUARDED_BY(mutex) CORELANE_THREAD_ATTRIBUTE_(guarded_by(mutex))
/// The function expects the mutex to be held, and does not release it.
#define CORELANE_REQUIRES(...) CORELANE_THREAD_ATTRIBUTE_(requires_capability(__VA_ARGS__))
#define CORELANE_ACQUIRE(...) CORELANE_THREAD_ATTRIBUTE_(acquire_capability(__VA_ARGS__))
#define CORELANE_RELEASE(...) CORELANE_THREAD_ATTRIBUTE_(release_capability(__VA_ARGS__))
#define CORELANE_TRY_ACQUIRE(...) CORELANE_THREAD_ATTRIBUTE_(try_acquire_capability(__VA_ARGS__))
#define CORELANE_RETURN_CAPABILITY(mutex) CORELANE_THREAD_ATTRIBUTE_(lock_returned(mutex))
/// The function is right for a reason that the analysis cannot see; a comment beside it says which.
#define CORELANE_NO_THREAD_SAFETY_ANALYSIS CORELANE_THREAD_ATTRIBUTE_(no_thread_safety_analysis)

namespace corelane {

namespace detail {
/// For a mutex that another thread has just now: looks for a moment whether it is released before
/// it sleeps. Most are held for less time than the system takes to wake a thread.
CORELANE_API void lock_taken(std::unique_lock<std::mutex>& lock);

#if defined(CORELANE_CHECK_LOCKS)
/// Notes that this thread takes a mutex; prints both ranks and aborts where the order is broken.
CORELANE_API void note_lock(LockRank rank) noexcept;
CORELANE_API void note_unlock(LockRank rank) noexcept;
#else
inline void note_lock(LockRank) noexcept {}
inline void note_unlock(LockRank) noexcept {}
#endif
}  // namespace detail

/// A std::mutex with a rank. Not recursive.
class CORELANE_THREAD_ATTRIBUTE_(capability("mutex")) Mutex {
 public:
  constexpr explicit Mutex(LockRank rank) noexcept : rank_(rank) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() CORELANE_ACQUIRE() {
    detail::note_lock(rank_);
    mutex_.lock();
  }
  void unlock() CORELANE_RELEASE() {
    mutex_.unlock();
    detail::note_unlock(rank_);
  }
  /// A try cannot deadlock, so it may be made in any order.
  bool try_lock() CORELANE_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
  [[maybe_unused]] const LockRank rank_;
};

/// Holds a Mutex while it lives, except between unlock() and lock().
class CORELANE_THREAD_ATTRIBUTE_(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) CORELANE_ACQUIRE(mutex)
      : lock_(mutex.mutex_, std::defer_lock), rank_(mutex.rank_) {
    lock();
  }
  ~MutexLock() CORELANE_RELEASE() {
    if (lock_.owns_lock()) unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() CORELANE_ACQUIRE() {
    detail::note_lock(rank_);
#if defined(__SANITIZE_THREAD__)
    lock_.lock();  // The sanitizer learns no order from a try.
#else
    if (!lock_.try_lock()) [[unlikely]]
      detail::lock_taken(lock_);
#endif
  }
  void unlock() CORELANE_RELEASE() {
    lock_.unlock();
    detail::note_unlock(rank_);
  }
  /// For Clock::wait_until and std::condition_variable, which hold the lock again on return.
  std::unique_lock<std::mutex>& native() noexcept { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
  [[maybe_unused]] const LockRank rank_;
};

}  // namespace corelane
