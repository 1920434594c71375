#include "corelane/session/session_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "corelane/session/session.h"

namespace corelane {
namespace {

constexpr std::int64_t kMaxThreadsPerCore = 64;

constexpr std::array<std::pair<TpMode, std::string_view>, 7> kTpModes = {{
    {TpMode::kAuto, "auto"},
    {TpMode::kAll, "all"},
    {TpMode::kCore0, "0"},
    {TpMode::kCore1, "1"},
    {TpMode::kCore2, "2"},
    {TpMode::kCores01, "0,1"},
    {TpMode::kCores012, "0,1,2"},
}};

constexpr std::array<std::pair<InputLayout, std::string_view>, 6> kLayouts = {{
    {InputLayout::kNchw, "original"},
    {InputLayout::kNchw, "nchw"},
    {InputLayout::kNchwSoftware, "original_software"},
    {InputLayout::kNchwSoftware, "nchw_software"},
    {InputLayout::kNhwc, "nhwc"},
    {InputLayout::kAny, "any"},
}};

bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Lower case, without blanks.
std::string squeezed(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (is_blank(c)) continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

Failure bad_schedule(std::string_view text, std::string_view why) {
  return error(Code::kInvalidArgument,
               "schedule '{}' {}; write core numbers such as \"0,1,2\", \"0 1\" or \"[0, 1]\"",
               text, why);
}

Status positive(std::string_view name, std::int64_t value) {
  if (value >= 1) return {};
  return error(Code::kInvalidArgument, "{} is {}; it must be at least 1, or kUnlimited", name,
               value);
}

}  // namespace

Result<std::vector<std::size_t>> parse_schedule(std::string_view text) {
  std::string_view rest = trimmed(text);
  if (rest.starts_with('[') != rest.ends_with(']') || rest == "[")
    return bad_schedule(text, "has one bracket only");
  if (rest.starts_with('[')) rest = trimmed(rest.substr(1, rest.size() - 2));
  if (rest.empty()) return bad_schedule(text, "must not be empty");
  std::vector<std::size_t> cores;
  bool separated = true;  // After a comma, or at the start.
  while (!rest.empty()) {
    const std::string_view token = rest.substr(0, rest.find_first_of(", \t\n\r"));
    if (token.empty()) {  // At a comma.
      if (separated) return bad_schedule(text, "has a comma without a number before it");
      separated = true;
      rest = trimmed(rest.substr(1));
      continue;
    }
    std::size_t core = 0;
    const auto [end, code] = std::from_chars(token.data(), token.data() + token.size(), core);
    if (code != std::errc() || end != token.data() + token.size())
      return bad_schedule(text, fmt::format("has '{}', which is not a core number", token));
    cores.push_back(core);
    separated = false;
    rest = trimmed(rest.substr(token.size()));
  }
  if (separated) return bad_schedule(text, "ends in a comma");
  return cores;
}

Result<TpMode> parse_tp_mode(std::string_view text) {
  const std::string word = squeezed(text);
  for (const auto& [mode, name] : kTpModes)
    if (word == name) return mode;
  return error(Code::kInvalidArgument,
               "tp_mode '{}' is unknown; allowed are auto, all, 0, 1, 2, \"0,1\" and \"0,1,2\"",
               text);
}

std::string_view tp_mode_name(TpMode mode) noexcept {
  for (const auto& [known, name] : kTpModes)
    if (known == mode) return name;
  return "auto";
}

Result<InputLayout> parse_input_layout(std::string_view text) {
  const std::string word = squeezed(text);
  for (const auto& [layout, name] : kLayouts)
    if (word == name) return layout;
  return error(Code::kInvalidArgument,
               "layout '{}' is unknown; allowed are original (nchw), original_software "
               "(nchw_software), nhwc and any",
               text);
}

std::string_view input_layout_name(InputLayout layout) noexcept {
  for (const auto& [known, name] : kLayouts)
    if (known == layout) return name;
  return "original";
}

Result<PlacementPolicy> parse_placement(std::string_view text) {
  const std::string word = squeezed(text);
  if (word == "formula") return PlacementPolicy::kFormula;
  if (word == "least_loaded") return PlacementPolicy::kLeastLoaded;
  if (word == "adaptive") return PlacementPolicy::kAdaptive;
  return error(Code::kInvalidArgument,
               "placement '{}' is unknown; allowed are formula, least_loaded and adaptive", text);
}

std::string_view placement_name(PlacementPolicy policy) noexcept {
  return policy == PlacementPolicy::kFormula       ? "formula"
         : policy == PlacementPolicy::kLeastLoaded ? "least_loaded"
                                                   : "adaptive";
}

device::CoreSet cores_of(TpMode mode) noexcept {
  switch (mode) {
    case TpMode::kAuto:
      return device::CoreSet::any();
    case TpMode::kAll:
      return device::CoreSet::platform();
    case TpMode::kCore0:
      return device::CoreSet::of({0});
    case TpMode::kCore1:
      return device::CoreSet::of({1});
    case TpMode::kCore2:
      return device::CoreSet::of({2});
    case TpMode::kCores01:
      return device::CoreSet::of({0, 1});
    case TpMode::kCores012:
      return device::CoreSet::of({0, 1, 2});
  }
  return device::CoreSet::any();
}

Status check(const SessionOptions& options, std::size_t cores) {
  if (!options.schedule.empty() && options.tp_mode) {
    return error(Code::kInvalidArgument,
                 "schedule and tp_mode exclude each other; leave one of them out");
  }
  if (options.threads_per_core < 1 || options.threads_per_core > kMaxThreadsPerCore) {
    return error(Code::kInvalidArgument, "threads_per_core is {}; it must be 1 to {}",
                 options.threads_per_core, kMaxThreadsPerCore);
  }
  CORELANE_TRY(positive("max_queue_size", options.max_queue_size));
  CORELANE_TRY(positive("max_pending_callbacks", options.max_pending_callbacks));
  if (options.submit_timeout <= Duration{0}) {
    return error(Code::kInvalidArgument, "submit_timeout is {} ns; it must be more than 0",
                 options.submit_timeout.count());
  }
  for (const std::size_t core : options.schedule) {
    if (core < cores && core < device::CoreSet::kMaxCores) continue;
    if (cores >= device::CoreSet::kMaxCores) {
      return error(Code::kOutOfCores, "schedule names core {}; no device has more than {} cores",
                   core, device::CoreSet::kMaxCores);
    }
    return error(Code::kOutOfCores,
                 "schedule names core {}; the device has {} core{}, numbered from 0", core, cores,
                 cores == 1 ? "" : "s");
  }
  if (options.tp_mode == TpMode::kAll && cores == 1) {
    return error(Code::kOutOfCores,
                 "tp_mode 'all' joins cores and the device has 1 core; use 'auto' or '0'")
        .with(Detail::kGiven, "tp_mode all")
        .with(Detail::kLimit, "1 core");
  }
  if (options.tp_mode) {
    const device::CoreSet wanted = cores_of(*options.tp_mode);
    if (wanted.is_mask() && !wanted.check(cores).ok()) {
      return error(Code::kOutOfCores,
                   "tp_mode '{}' names a core that is not there; the device has {} core{}, "
                   "numbered from 0",
                   tp_mode_name(*options.tp_mode), cores, cores == 1 ? "" : "s")
          .with(Detail::kGiven, fmt::format("tp_mode {}", tp_mode_name(*options.tp_mode)))
          .with(Detail::kLimit, fmt::format("{} core{}", cores, cores == 1 ? "" : "s"));
    }
  }
  return {};
}

}  // namespace corelane
