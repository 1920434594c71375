#include "corelane/device/core_set.h"

#include <algorithm>
#include <optional>

#include "base/text_parts.h"

namespace corelane::device {

CoreSet CoreSet::any(std::size_t count) noexcept {
  CoreSet set;
  set.value_ = count;
  return set;
}

CoreSet CoreSet::any_of(const CoreSet& cores, std::size_t count) noexcept {
  CoreSet set;
  set.kind_ = Kind::kAnyOf;
  // More than a mask has are refused by check() as what they are: too many.
  set.count_ = static_cast<std::uint8_t>(std::min(count, kMaxCores + 1));
  set.value_ = cores.bits();
  return set;
}

CoreSet CoreSet::platform() noexcept {
  CoreSet set;
  set.kind_ = Kind::kPlatform;
  set.value_ = 0;
  return set;
}

CoreSet CoreSet::of(std::initializer_list<std::size_t> cores) noexcept {
  std::uint64_t bits = 0;
  for (const std::size_t core : cores)
    if (core < kMaxCores) bits |= std::uint64_t{1} << core;
  return mask(bits);
}

CoreSet CoreSet::mask(std::uint64_t bits) noexcept {
  CoreSet set;
  set.kind_ = Kind::kMask;
  set.value_ = bits;
  return set;
}

CoreSet CoreSet::first(std::size_t count) noexcept {
  // A shift by all 64 bits is undefined.
  return mask(count >= kMaxCores ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1);
}

Status CoreSet::refuse(std::size_t cores) const {
  if (kind_ == Kind::kAny)
    return error(Code::kInvalidArgument,
                 "core set '{}' asks for {} cores; the device has {}, so ask for 1 to {}",
                 to_string(), value_, cores, cores);
  if (value_ == 0)
    return error(Code::kInvalidArgument,
                 "the core set is empty; name at least one core of 0 to {}, or use 'any'",
                 cores - 1);
  if (kind_ == Kind::kAnyOf && (count_ == 0 || count_ > std::popcount(value_)))
    return error(Code::kInvalidArgument,
                 "core set '{}' asks for {} of {} cores; ask for 1 to {}, or name more",
                 to_string(), count_, std::popcount(value_), std::popcount(value_));
  // A mask names cores by index: one that fits a larger device is refused, never moved.
  return error(Code::kInvalidArgument,
               "core set '{}' names a core that does not exist; the device has cores 0 to {}",
               to_string(), cores - 1);
}

/// The texts that parse_core_set() reads; the empty mask is the empty text, which it refuses.
std::string CoreSet::to_string() const {
  if (kind_ == Kind::kPlatform) return "platform";
  if (kind_ == Kind::kAnyOf)
    return fmt::format("{}@{}", any(count_).to_string(), mask(value_).to_string());
  if (kind_ == Kind::kAny) return value_ == 1 ? "any" : fmt::format("any:{}", value_);
  std::string text;
  for (std::size_t core = 0; core < kMaxCores; ++core) {
    if (!contains(core)) continue;
    if (!text.empty()) text += ',';
    text += std::to_string(core);
  }
  return text;
}

Result<CoreSet> parse_core_set(std::string_view text) {
  const auto wrong = [&](std::string_view token) {
    return error(Code::kInvalidArgument,
                 "core set '{}': '{}' is not understood; write cores such as '0,2', 'any', "
                 "'any:2', 'any:2@0,1,3' or 'platform'",
                 text, token);
  };
  if (text == "platform" || text == "all") return CoreSet::platform();
  const std::size_t at = text.find('@');
  const std::string_view head = text.substr(0, at);
  std::optional<std::size_t> count;
  if (head == "any") count = 1;
  if (head.substr(0, 4) == "any:") {
    count = parse_number<std::size_t>(head.substr(4));
    if (!count || *count == 0 || *count > CoreSet::kMaxCores) return wrong(head.substr(4));
  }
  if (at == std::string_view::npos && count) return CoreSet::any(*count);
  if (at != std::string_view::npos && !count) return wrong(head);
  std::uint64_t bits = 0;
  const std::string_view list = count ? text.substr(at + 1) : text;
  CORELANE_TRY(for_each_part(list, ',', [&](std::string_view token) -> Status {
    const auto core = parse_number<std::size_t>(token);
    if (!core || *core >= CoreSet::kMaxCores) return wrong(token);
    bits |= std::uint64_t{1} << *core;
    return {};
  }));
  return count ? CoreSet::any_of(CoreSet::mask(bits), *count) : CoreSet::mask(bits);
}

}  // namespace corelane::device
