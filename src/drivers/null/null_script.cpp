#include "drivers/null/null_script.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/text_parts.h"
#include "corelane/driver/module.h"

namespace corelane::drivers::null {
namespace {

/// "core1=2.5": core 1 takes 2.5 times as long.
Status read_factor(std::string_view key, std::string_view value, Script& script) {
  constexpr std::string_view kCore = "core";
  const auto core = parse_number<std::size_t>(key.substr(kCore.size()));
  const auto factor = parse_number<double>(value);
  if (!core || *core >= script.core_factors.size())
    return error(Code::kInvalidArgument, "null device: option '{}' names no core of 0 to {}", key,
                 script.core_factors.size() - 1);
  if (!factor || !(*factor > 0 && *factor <= 1000))
    return error(Code::kInvalidArgument,
                 "null device: '{}={}' is not a factor above 0 and up to 1000", key, value);
  script.core_factors[*core] = *factor;
  return {};
}

Status read_option(std::string_view key, std::string_view value, Script& script) {
  if (key == "a" || key == "b") {
    CORELANE_ASSIGN((key == "a" ? script.a : script.b), parse_duration(value));
    return {};
  }
  if (key == "switch") {
    CORELANE_ASSIGN(script.switch_time, parse_duration(value));
    return {};
  }
  if (key == "fail" || key == "log" || key == "threads") {
    const auto number = parse_number<std::uint64_t>(value);
    if (!number || (key == "threads" && *number > 1))
      return error(Code::kInvalidArgument, "null device: '{}={}' is not {}", key, value,
                   key == "threads" ? "0 or 1" : "a whole number");
    if (key == "fail") script.fail_every = *number;
    if (key == "log") script.log_every = *number;
    if (key == "threads") script.threads = *number == 1;
    return {};
  }
  if (key == "name") return {};
  if (key.starts_with("core")) return read_factor(key, value, script);
  return error(Code::kInvalidArgument,
               "null device: unknown option '{}'; known are a, b, switch, core<N>, fail, log, "
               "threads, name, {}",
               key, device::kLaneOptionNames);
}

}  // namespace

Duration sum_of(Duration one, Duration other) noexcept {
  return one > Duration::max() - other ? Duration::max() : one + other;
}

/// Without rounding where no factor applies: tests compare times exactly.
Duration Script::time_of(std::uint64_t core_bits, std::uint32_t batch) const {
  double slowest = 0;
  for (std::uint64_t bits = core_bits; bits != 0; bits &= bits - 1)
    slowest = std::max(slowest, core_factors[static_cast<std::size_t>(std::countr_zero(bits))]);
  // The options have 32 bits of seconds: `b` of many samples is longer than any duration.
  const bool fits = b == Duration{} || batch <= Duration::max() / b;
  const Duration plain = sum_of(a, fits ? b * batch : Duration::max());
  const double cores = std::max(std::popcount(core_bits), 1);
  if (slowest == cores) return plain;
  const double scaled = static_cast<double>(plain.count()) * slowest / cores;
  // The nearest double lies above the longest duration.
  if (scaled >= static_cast<double>(Duration::max().count())) return Duration::max();
  return Duration(static_cast<std::int64_t>(scaled));
}

Result<Duration> parse_duration(std::string_view text) {
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  const auto number = parse_number<std::uint32_t>(text.substr(0, digits));
  const std::string_view unit = text.substr(digits);
  std::int64_t scale = 0;
  if (unit == "ns") scale = 1;
  if (unit == "us") scale = 1'000;
  if (unit == "ms") scale = 1'000'000;
  if (unit == "s") scale = 1'000'000'000;
  if (!number || scale == 0)
    return error(Code::kInvalidArgument,
                 "'{}' is not a duration; write a whole number with ns, us, ms or s, such as 1ms",
                 text);
  return Duration(*number * scale);
}

Result<Script> read_script(const device::DeviceSpec& spec, std::size_t cores) {
  Script script;
  script.core_factors.assign(cores, 1.0);
  for (const auto& [key, value] : spec.options) CORELANE_TRY(read_option(key, value, script));
  return script;
}

}  // namespace corelane::drivers::null
