#include "corelane/device/host_operator.h"

#include "base/sync.h"

namespace corelane::device {

struct HostOperatorTable::Impl {
  Mutex mutex{LockRank::kHostOperators};
  std::map<std::string, HostOperator, std::less<>> operators CORELANE_GUARDED_BY(mutex);
};

HostOperatorTable::HostOperatorTable() : impl_(std::make_unique<Impl>()) {}

HostOperatorTable::~HostOperatorTable() = default;

// NOLINTNEXTLINE(performance-unnecessary-value-param): it is moved into the table.
Status HostOperatorTable::add(std::string type, HostOperator op) {
  if (type.empty())
    return error(Code::kInvalidArgument,
                 "a host operator needs a type; pass the operator type the model names");
  if (!op)
    return error(Code::kInvalidArgument, "host operator '{}' has no callback; pass a function",
                 type);
  const MutexLock lock(impl_->mutex);
  const auto [place, added] = impl_->operators.try_emplace(std::move(type), std::move(op));
  if (added) return {};
  return error(Code::kWrongState,
               "host operator '{}' is registered already; remove it before adding another",
               place->first);
}

void HostOperatorTable::remove(std::string_view type) {
  HostOperator removed;  // Destroyed after the lock: it may own anything.
  const MutexLock lock(impl_->mutex);
  const auto place = impl_->operators.find(type);
  if (place == impl_->operators.end()) return;
  removed = std::move(place->second);
  impl_->operators.erase(place);
}

/// A copy: the operator may be removed while it runs.
HostOperator HostOperatorTable::find(std::string_view type) const {
  const MutexLock lock(impl_->mutex);
  const auto place = impl_->operators.find(type);
  return place == impl_->operators.end() ? HostOperator() : place->second;
}

}  // namespace corelane::device
