#include "scheduler/config/key_errors.h"

#include <algorithm>
#include <utility>

#include "scheduler/config/shown_text.h"

namespace corelane::scheduler {
namespace {

bool names_key(const Status& why) {
  const auto details = why.details();
  return std::ranges::any_of(details, [](const auto& one) { return one.first == Detail::kKey; });
}

/// `why` in other words: its details and its cause stay.
Status reworded(const Status& why, Code code, std::string text) {
  const Status cause = why.cause();
  Status told = cause.ok() ? Status(code, std::move(text)) : cause.wrap(code, text);
  for (const auto& [key, value] : why.details()) told = told.with(key, value);
  return told;
}

}  // namespace

Failure KeyErrors::refuse(std::string_view key, std::string_view given, std::string_view allowed,
                          std::string_view next) const {
  return error(Code::kInvalidArgument, "{}key {}: given {}; allowed is {}; {}",
               place_ ? place_(key) : std::string(), shown(key, '\''), shown(given), allowed, next)
      .with(Detail::kKey, key)
      .with(Detail::kGiven, given)
      .with(Detail::kAllowed, allowed);
}

Failure KeyErrors::refuse(std::string_view key, const Status& why, Code code) const {
  const std::string place = place_ ? place_(key) : std::string();
  if (names_key(why)) return error(reworded(why, code, place + why.message()));
  return error(reworded(why, code, place + "key " + shown(key, '\'') + ": " + why.message()))
      .with(Detail::kKey, key);
}

}  // namespace corelane::scheduler
