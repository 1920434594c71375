/// Values that are expensive to make, made once for each key.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "base/sync.h"
#include "corelane/base/status.h"

namespace corelane {

/// Nothing is made under the lock: values of different keys are made at the same time, and callers
/// that want one that is being made wait for that one alone. Any thread. A thread that calls get()
/// may hold no mutex that `make` needs.
template <class Key, class Value>
class OnceMap {
 public:
  /// Past `limit` values all are dropped and made again when they are asked for.
  explicit OnceMap(LockRank rank, std::size_t limit = std::numeric_limits<std::size_t>::max())
      : limit_(limit), mutex_(rank) {}

  /// The value of `key`; the first caller makes it with `make` (() -> Result<Value>). Where that
  /// fails, or throws, all callers that waited for it fail alike, and the next one tries again.
  /// `make` must not ask for the same key.
  template <class Make>
  Result<Value> get(const Key& key, Make&& make) {
    if (const Future found = find(key); found.valid()) return found.get();
    std::promise<Result<Value>> promise;
    if (const Future other = add(key, promise.get_future().share()); other.valid())
      return other.get();
    try {
      Result<Value> made = make();
      if (!made) drop(key);
      promise.set_value(made);
      return made;
    } catch (...) {
      drop(key);
      promise.set_exception(std::current_exception());
      throw;
    }
  }

  /// Forgets the value of `key` where that is `value`, so that the next caller makes one anew. Who
  /// has it keeps it.
  void forget(const Key& key, const Value& value) {
    Future gone;  // Goes after the lock.
    const MutexLock lock(mutex_);
    const auto found = values_.find(key);
    if (found == values_.end() ||
        found->second.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      return;
    const Result<Value>& there = found->second.get();
    if (!there || *there != value) return;
    gone = std::move(found->second);
    values_.erase(found);
  }

  /// What is there, in the order of the keys; without what is being made.
  std::vector<Value> values() const {
    std::vector<Value> all;
    const MutexLock lock(mutex_);
    for (const auto& [key, value] : values_) {
      // A failure has been dropped before it is there.
      if (value.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
        all.push_back(*value.get());
    }
    return all;
  }

 private:
  using Future = std::shared_future<Result<Value>>;

  Future find(const Key& key) const {
    const MutexLock lock(mutex_);
    const auto found = values_.find(key);
    return found == values_.end() ? Future() : found->second;
  }
  /// What another thread has added since; else invalid.
  Future add(const Key& key, Future mine) {
    std::map<Key, Future> dropped;  // Goes after the lock.
    const MutexLock lock(mutex_);
    if (values_.size() >= limit_ && !values_.contains(key)) values_.swap(dropped);
    const auto [place, added] = values_.emplace(key, std::move(mine));
    return added ? Future() : place->second;
  }
  void drop(const Key& key) {
    const MutexLock lock(mutex_);
    values_.erase(key);
  }

  const std::size_t limit_;
  mutable Mutex mutex_;
  std::map<Key, Future> values_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace corelane
