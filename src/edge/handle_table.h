/// Handles: numbers that stand for objects of an API. A number is looked up, never followed, and
/// never used twice, so that a stale one is recognised however late it comes.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/fork.h"
#include "base/sync.h"

namespace corelane::edge {

/// What is known of a number that a caller passes.
enum class HandleState : std::uint8_t {
  kLive,        ///< It stands for an object.
  kTaken,       ///< It was given out, and its object was taken out since.
  kUnknown,     ///< It was never given out.
  kBeforeFork,  ///< The table belongs to the process that forked this one.
};

/// All functions from any thread. Objects are never destroyed under the table's lock.
template <class T>
class HandleTable {
 public:
  /// Numbers begin with `first`, which is not 0.
  explicit HandleTable(std::uint64_t first) : first_(first), next_(first) {}
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  /// A new number for `object`.
  std::uint64_t add(std::shared_ptr<T> object) {
    const MutexLock lock(mutex_);
    const std::uint64_t number = next_++;
    objects_.emplace(number, std::move(object));
    return number;
  }

  /// Null for a number that is not kLive.
  std::shared_ptr<T> find(std::uint64_t number) const noexcept {
    if (number == 0 || after_fork()) return nullptr;
    const MutexLock lock(mutex_);
    const auto found = objects_.find(number);
    return found == objects_.end() ? nullptr : found->second;
  }

  /// Takes the object out of the table: of two callers one gets it, the other null.
  std::shared_ptr<T> take(std::uint64_t number) noexcept {
    if (number == 0 || after_fork()) return nullptr;
    const MutexLock lock(mutex_);
    const auto found = objects_.find(number);
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

  HandleState state(std::uint64_t number) const noexcept {
    // In a forked child a thread that does not exist there may hold the lock.
    if (after_fork()) return HandleState::kBeforeFork;
    const MutexLock lock(mutex_);
    if (number < first_ || number >= next_) return HandleState::kUnknown;
    return objects_.contains(number) ? HandleState::kLive : HandleState::kTaken;
  }

  /// True in a child of the process that made the table. Its objects need threads that the child
  /// does not have.
  bool after_fork() const noexcept { return fork_count() != made_in_; }

 private:
  const std::uint64_t first_;
  const std::uint64_t made_in_ = fork_count();
  mutable Mutex mutex_{LockRank::kLeaf};
  std::uint64_t next_ CORELANE_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, std::shared_ptr<T>> objects_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace corelane::edge
