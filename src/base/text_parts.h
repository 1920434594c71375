/// Reading of option texts: parts between separators, and numbers.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "corelane/base/status.h"

namespace corelane {

/// The number that the whole of `text` writes, in the locale "C"; nullopt for anything else, such
/// as blanks, a sign "+", and a minus where T has no sign.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Calls `f` with each part of `text`, empty ones too; its first failure ends that.
template <class F>
Status for_each_part(std::string_view text, char separator, const F& f) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    CORELANE_TRY(f(text.substr(at, end - at)));
    at = end + 1;
  }
  return {};
}

}  // namespace corelane
