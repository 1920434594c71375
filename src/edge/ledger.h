/// The ledger of an API's checking mode: what the API gave out and must get back.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/sync.h"
#include "edge/call_site.h"

namespace corelane::edge {

struct NoFacts {};

/// Things of one kind, by the key that the caller has of them, each with the call that gave it out
/// and facts of the API's own. All functions from any thread.
template <class Key, class Facts = NoFacts>
class Ledger {
 public:
  struct Entry {
    CallSite made;
    [[no_unique_address]] Facts facts;
  };

  /// `key` was given out by this thread's current call.
  void add(const Key& key, Facts facts = {}) {
    const MutexLock lock(mutex_);
    entries_.insert_or_assign(key, Entry{current_call(), std::move(facts)});
  }

  /// `key` came back: its entry, or nothing where it is not in the ledger.
  std::optional<Entry> remove(const Key& key) {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return std::nullopt;
    std::optional<Entry> entry(std::move(found->second));
    entries_.erase(found);
    return entry;
  }

  /// Calls `f` with the facts of `key`, if there are any, under the ledger's lock: `f` reports
  /// nothing itself.
  template <class F>
  void update(const Key& key, F&& f) {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end()) f(found->second.facts);
  }

  /// What did not come back yet.
  std::vector<std::pair<Key, Entry>> left() const {
    const MutexLock lock(mutex_);
    return {entries_.begin(), entries_.end()};
  }

 private:
  mutable Mutex mutex_{LockRank::kLeaf};
  std::map<Key, Entry> entries_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace corelane::edge
