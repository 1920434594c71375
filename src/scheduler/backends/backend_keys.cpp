#include "scheduler/backends/backend_keys.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "base/text_parts.h"
#include "scheduler/config/shown_text.h"

namespace corelane::scheduler {
namespace {

constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();

Failure refusal(std::string_view key, std::string_view given, const std::string& allowed) {
  return error(Code::kInvalidArgument,
               "key '{}': given {}; allowed is {}; correct the value, or leave the key out", key,
               shown(given), allowed)
      .with(Detail::kKey, key)
      .with(Detail::kGiven, given)
      .with(Detail::kAllowed, allowed);
}

constexpr std::string_view kBlanks = " \t\r\n";

/// The number of a key, for which `fits` holds; else what `allowed` says is in the refusal. "nan"
/// must fit nothing.
template <class T, class Fits, class Allowed>
Result<T> number_where(const Config& config, std::string_view key, T fallback, const Fits& fits,
                       const Allowed& allowed) {
  const std::string* text = text_of(config, key);
  if (text == nullptr) return fallback;
  const auto number = parse_number<T>(trimmed(*text, kBlanks));
  if (number && fits(*number)) return *number;
  return refusal(key, *text, allowed());
}

template <class T>
Result<T> number_from(const Config& config, std::string_view key, T fallback, T least, T most,
                      std::string_view kind) {
  return number_where(
      config, key, fallback, [=](T number) { return least <= number && number <= most; },
      [=] { return fmt::format("{} from {} to {}", kind, least, most); });
}

}  // namespace

const std::string* text_of(const Config& config, std::string_view key) {
  const auto found = config.find(key);
  return found == config.end() ? nullptr : &found->second;
}

Result<std::uint64_t> whole_number(const Config& config, std::string_view key,
                                   std::uint64_t fallback, std::uint64_t least,
                                   std::uint64_t most) {
  return number_from(config, key, fallback, least, most, "a whole number");
}

Result<std::int32_t> level(const Config& config, std::string_view key, std::int32_t fallback,
                           std::int32_t least, std::int32_t most) {
  return number_from(config, key, fallback, least, most, "a whole number");
}

Result<double> real_number(const Config& config, std::string_view key, double fallback,
                           double least, double most) {
  return number_from(config, key, fallback, least, most, "a number");
}

Result<double> share(const Config& config, std::string_view key, double fallback, double most) {
  return number_where(
      config, key, fallback, [most](double number) { return 0 < number && number <= most; },
      [most] { return fmt::format("a number above 0, at most {}", most); });
}

Result<bool> flag(const Config& config, std::string_view key, bool fallback) {
  const std::string* text = text_of(config, key);
  if (text == nullptr) return fallback;
  const std::string_view value = trimmed(*text, kBlanks);
  if (value == "true" || value == "1") return true;
  if (value == "false" || value == "0") return false;
  return refusal(key, *text, "true or false");
}

Result<Range> min_max(const Config& config, std::uint32_t most) {
  CORELANE_ASSIGN(const std::uint64_t max, whole_number(config, "max", most, 1, kMost));
  CORELANE_ASSIGN(const std::uint64_t min, whole_number(config, "min", 1, 1, kMost));
  if (min > max)
    return refusal("min", std::to_string(min), fmt::format("1 to {}, which is max", max));
  return Range{static_cast<std::uint32_t>(min), static_cast<std::uint32_t>(max)};
}

Result<Range> range_pair(const Config& config, std::string_view key) {
  constexpr std::string_view kAllowed = "'lo,hi' with 1 <= lo <= hi, such as '8,19'";
  const std::string* text = text_of(config, key);
  if (text == nullptr)
    return error(Code::kInvalidArgument, "key '{}' is missing; write {}", key, kAllowed)
        .with(Detail::kKey, key)
        .with(Detail::kAllowed, kAllowed);
  const std::size_t comma = text->find(',');
  if (comma != text->npos) {
    const std::string_view all = *text;
    const auto lo = parse_number<std::uint32_t>(trimmed(all.substr(0, comma), kBlanks));
    const auto hi = parse_number<std::uint32_t>(trimmed(all.substr(comma + 1), kBlanks));
    if (lo && hi && 1 <= *lo && *lo <= *hi) return Range{*lo, *hi};
  }
  return refusal(key, *text, std::string(kAllowed));
}

}  // namespace corelane::scheduler
