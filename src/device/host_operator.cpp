#include "corelane/device/host_operator.h"

namespace corelane::device {

Status HostOperatorTable::add(std::string type, HostOperator op) {
  if (type.empty())
    return error(Code::kInvalidArgument,
                 "a host operator needs a type; pass the operator type the model names");
  if (!op)
    return error(Code::kInvalidArgument, "host operator '{}' has no callback; pass a function",
                 type);
  std::lock_guard guard(mutex_);
  const auto [place, added] = operators_.try_emplace(std::move(type), std::move(op));
  if (added) return {};
  return error(Code::kWrongState,
               "host operator '{}' is registered already; remove it before adding another",
               place->first);
}

void HostOperatorTable::remove(std::string_view type) {
  HostOperator removed;  // Destroyed after the lock: it may own anything.
  std::lock_guard guard(mutex_);
  const auto place = operators_.find(type);
  if (place == operators_.end()) return;
  removed = std::move(place->second);
  operators_.erase(place);
}

HostOperator HostOperatorTable::find(std::string_view type) const {
  std::lock_guard guard(mutex_);
  const auto place = operators_.find(type);
  return place == operators_.end() ? HostOperator() : place->second;
}

}  // namespace corelane::device
