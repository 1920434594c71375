#include "scheduler/config/key_errors.h"

#include "scheduler/config/shown_text.h"

namespace corelane::scheduler {

Failure KeyErrors::refuse(std::string_view key, std::string_view given, std::string_view allowed,
                          std::string_view next) const {
  return error(Code::kInvalidArgument, "{}key {}: given {}; allowed is {}; {}",
               place_ ? place_(key) : std::string(), shown(key, '\''), shown(given), allowed, next)
      .with(Detail::kGiven, given)
      .with(Detail::kAllowed, allowed);
}

Failure KeyErrors::refuse(std::string_view key, const Status& why, Code code) const {
  const std::string place = place_ ? place_(key) : std::string();
  if (why.message().starts_with("key '")) return error(code, "{}{}", place, why.message());
  return error(code, "{}key {}: {}", place, shown(key, '\''), why.message());
}

}  // namespace corelane::scheduler
