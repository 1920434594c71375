#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/guard.h"
#include "base/leaked.h"
#include "base/nearest_name.h"
#include "base/sync.h"
#include "corelane/scheduler/backend.h"
#include "corelane/scheduler/filter.h"
#include "scheduler/backends/builtin_backends.h"
#include "scheduler/backends/builtin_filters.h"
#include "scheduler/config/backend_text.h"
#include "scheduler/config/shown_text.h"
#include "scheduler/node/chain.h"

namespace corelane::scheduler {
namespace {

/// A table of makers. Its entries are shared, so that no code of the user (the copy of a maker)
/// runs under the lock.
template <class Entry>
class NameTable {
 public:
  explicit NameTable(std::string_view what) : what_(what) {}

  Status add(std::string_view name, Entry entry) {
    if (!is_name(name))
      return error(Code::kInvalidArgument,
                   "{} name {}: letters, digits and '_' are allowed, and no digit first", what_,
                   shown(name))
          .with(Detail::kGiven, name);
    auto shared = std::make_shared<const Entry>(std::move(entry));
    bool added = false;
    {
      const MutexLock lock(mutex_);
      // `shared` keeps an entry whose name is taken: it is destroyed after the lock.
      added = entries_.try_emplace(std::string(name), shared).second;
    }
    if (added) return {};
    return error(Code::kInvalidArgument, "there is a {} '{}' already; choose another name", what_,
                 name)
        .with(Detail::kGiven, name);
  }

  Result<std::shared_ptr<const Entry>> find(std::string_view name) const {
    {
      const MutexLock lock(mutex_);
      if (const auto found = entries_.find(name); found != entries_.end()) return found->second;
    }
    // Here, without the lock, which names() takes.
    const std::vector<std::string> known = names();
    return error(Code::kNotFound, "there is no {} {}{}", what_, shown(name),
                 nearest_hint(name, known))
        .with(Detail::kGiven, name)
        .with(Detail::kAllowed, fmt::format("{}", fmt::join(known, ", ")));
  }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    const MutexLock lock(mutex_);
    for (const auto& [name, entry] : entries_) result.push_back(name);
    return result;
  }

 private:
  const std::string_view what_;
  mutable Mutex mutex_{LockRank::kLeaf};
  std::map<std::string, std::shared_ptr<const Entry>, std::less<>> entries_
      CORELANE_GUARDED_BY(mutex_);
};

/// What `maker` makes: a failure with `what` when it throws or makes nothing.
template <class T, class Maker, class... Args>
Result<std::unique_ptr<T>> made_by(const Maker& maker, const std::string& what,
                                   const Args&... args) {
  CORELANE_ASSIGN(auto made, no_throw(
                                 what, [&] { return Result<std::unique_ptr<T>>(maker(args...)); },
                                 Code::kEngineFailed));
  if (made) return made;
  return error(Code::kEngineFailed, "{} gave null; it has to return a new object", what);
}

}  // namespace

struct BackendRegistry::Impl {
  struct Entry {
    Maker maker;
    std::vector<std::string> keys;
  };
  NameTable<Entry> backends{"backend"};
  NameTable<FilterMaker> filters{"filter"};
};

BackendRegistry::BackendRegistry() : impl_(std::make_unique<Impl>()) {
  for (const std::string& name : builtin_filter_names()) {
    // The names are good and differ, so this cannot fail.
    static_cast<void>(impl_->filters.add(name, [name] { return make_builtin_filter(name); }));
  }
}

BackendRegistry::~BackendRegistry() = default;

Status BackendRegistry::add(std::string_view name, Maker maker, std::vector<std::string> keys) {
  if (!maker) return error(Code::kInvalidArgument, "backend '{}' was given without a maker", name);
  return impl_->backends.add(name, {std::move(maker), std::move(keys)});
}

Result<std::unique_ptr<Backend>> BackendRegistry::make(
    std::string_view name, const BackendSurroundings& surroundings) const {
  CORELANE_ASSIGN(const auto entry, impl_->backends.find(name));
  BackendSurroundings complete = surroundings;
  if (!complete.clock) complete.clock = real_clock();
  if (complete.names == nullptr) complete.names = this;
  return made_by<Backend>(entry->maker, fmt::format("the maker of backend '{}'", name), complete);
}

std::vector<std::string> BackendRegistry::names() const { return impl_->backends.names(); }

Result<std::vector<std::string>> BackendRegistry::keys_of(std::string_view name) const {
  CORELANE_ASSIGN(const auto entry, impl_->backends.find(name));
  return entry->keys;
}

Status BackendRegistry::add_filter(std::string_view name, FilterMaker maker) {
  if (!maker) return error(Code::kInvalidArgument, "filter '{}' was given without a maker", name);
  return impl_->filters.add(name, std::move(maker));
}

Result<std::unique_ptr<Filter>> BackendRegistry::make_filter(std::string_view name) const {
  CORELANE_ASSIGN(const auto maker, impl_->filters.find(name));
  return made_by<Filter>(*maker, fmt::format("the maker of filter '{}'", name));
}

std::vector<std::string> BackendRegistry::filter_names() const { return impl_->filters.names(); }

BackendRegistry& backend_registry() {
  // Never destroyed: instances may make backends while the process ends.
  static Leaked<BackendRegistry> registry;
  // Apart from the registry's own constructor: only this registry has backends of its own.
  static const bool filled = [] {
    add_builtin_backends(*registry);
    add_chain(*registry);
    return true;
  }();
  static_cast<void>(filled);
  return *registry;
}

}  // namespace corelane::scheduler
