#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/leaked.h"
#include "base/nearest_name.h"
#include "base/sync.h"
#include "corelane/scheduler/backend.h"
#include "scheduler/config/backend_text.h"
#include "scheduler/config/shown_text.h"

namespace corelane::scheduler {

struct BackendRegistry::Impl {
  struct Entry {
    Maker maker;
    std::vector<std::string> keys;
  };

  Result<Entry> find(std::string_view name) const {
    std::vector<std::string> known;
    {
      const MutexLock lock(mutex);
      if (const auto found = entries.find(name); found != entries.end()) return found->second;
      for (const auto& [key, entry] : entries) known.push_back(key);
    }
    return error(Code::kNotFound, "no backend {} is registered{}", shown(name),
                 nearest_hint(name, known));
  }

  mutable Mutex mutex{LockRank::kLeaf};
  std::map<std::string, Entry, std::less<>> entries CORELANE_GUARDED_BY(mutex);
};

BackendRegistry::BackendRegistry() : impl_(std::make_unique<Impl>()) {}
BackendRegistry::~BackendRegistry() = default;

Status BackendRegistry::add(std::string_view name, Maker maker, std::vector<std::string> keys) {
  if (!is_name(name) || !maker)
    return error(Code::kInvalidArgument,
                 "backend {}: a name of letters, digits and '_', no digit first, and a maker are "
                 "needed",
                 shown(name));
  const MutexLock lock(impl_->mutex);
  if (impl_->entries.try_emplace(std::string(name), Impl::Entry{std::move(maker), std::move(keys)})
          .second)
    return {};
  return error(Code::kInvalidArgument, "backend '{}' is registered already; take another name",
               name);
}

Result<std::unique_ptr<Backend>> BackendRegistry::make(
    std::string_view name, const BackendSurroundings& surroundings) const {
  CORELANE_ASSIGN(const Impl::Entry entry, impl_->find(name));
  return entry.maker(surroundings);
}

std::vector<std::string> BackendRegistry::names() const {
  std::vector<std::string> found;
  const MutexLock lock(impl_->mutex);
  for (const auto& [name, entry] : impl_->entries) found.push_back(name);
  return found;
}

Result<std::vector<std::string>> BackendRegistry::keys_of(std::string_view name) const {
  CORELANE_ASSIGN(Impl::Entry entry, impl_->find(name));
  return std::move(entry.keys);
}

BackendRegistry& backend_registry() {
  // Never destroyed: instances may make backends while the process ends.
  static Leaked<BackendRegistry> registry;
  return *registry;
}

}  // namespace corelane::scheduler
