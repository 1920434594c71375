/// Reading of option texts: parts between separators, and numbers.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
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

/// A number of bytes, with k, M or G for 2^10, 2^20 or 2^30; nullopt for anything else.
inline std::optional<std::size_t> parse_bytes(std::string_view text) {
  constexpr std::string_view kUnits = "kMG";
  std::size_t shift = 0;
  const std::size_t unit = text.empty() ? kUnits.npos : kUnits.find(text.back());
  if (unit != kUnits.npos) {
    shift = 10 * (unit + 1);
    text.remove_suffix(1);
  }
  const auto number = parse_number<std::size_t>(text);
  if (!number || *number > std::numeric_limits<std::size_t>::max() >> shift) return std::nullopt;
  return *number << shift;
}

/// `text` without the characters of `blanks` at both ends.
inline std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
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
