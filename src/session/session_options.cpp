#include "corelane/session/session_options.h"

#include <algorithm>
#include <iterator>

#include "base/text_parts.h"
#include "corelane/session/session.h"

namespace corelane {
namespace {

/// Contexts take memory: more is a mistake in units rather than a wish.
constexpr std::int64_t kMaxThreadsPerCore = 64;

template <class T>
struct Word {
  T value;
  std::string_view name;  ///< Of several names of a value, the first one is shown.
};

constexpr Word<TpMode> kTpModes[] = {
    {TpMode::kAuto, "auto"},      {TpMode::kAll, "all"}, {TpMode::kCore0, "0"},
    {TpMode::kCore1, "1"},        {TpMode::kCore2, "2"}, {TpMode::kCores01, "0,1"},
    {TpMode::kCores012, "0,1,2"},
};

// kNchwSoftware means kNchw. It is a value of its own because options are shown as they were given.
constexpr Word<InputLayout> kLayouts[] = {
    {InputLayout::kNchw, "original"},
    {InputLayout::kNchw, "nchw"},
    {InputLayout::kNchwSoftware, "original_software"},
    {InputLayout::kNchwSoftware, "nchw_software"},
    {InputLayout::kNhwc, "nhwc"},
    {InputLayout::kAny, "any"},
};

constexpr Word<PlacementPolicy> kPlacements[] = {
    {PlacementPolicy::kFormula, "formula"},
    {PlacementPolicy::kLeastLoaded, "least_loaded"},
    {PlacementPolicy::kAdaptive, "adaptive"},
};

constexpr std::string_view kBlanks = " \t\n\r";

/// Lower case, without blanks.
std::string squeezed(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (kBlanks.find(c) != kBlanks.npos) continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

/// `allowed` is what the message lists.
template <class T, std::size_t N>
Result<T> read_word(const Word<T> (&words)[N], std::string_view text, std::string_view option,
                    std::string_view allowed) {
  const std::string given = squeezed(text);
  for (const auto& [value, name] : words)
    if (given == name) return value;
  return error(Code::kInvalidArgument, "{} '{}' is unknown; allowed are {}", option, text, allowed);
}

template <class T, std::size_t N>
std::string_view name_of(const Word<T> (&words)[N], T value) noexcept {
  const auto found = std::find_if(std::begin(words), std::end(words),
                                  [&](const Word<T>& word) { return word.value == value; });
  return found == std::end(words) ? words[0].name : found->name;
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

/// `last`: the largest enumerator.
template <class E>
Status enumerator(std::string_view name, E value, E last) {
  if (value <= last) return {};
  return error(Code::kInvalidArgument, "{} is {}, which is none of its values; 0 to {} are", name,
               static_cast<int>(value), static_cast<int>(last));
}

Status check_enumerators(const SessionOptions& options) {
  if (options.tp_mode) CORELANE_TRY(enumerator("tp_mode", *options.tp_mode, TpMode::kCores012));
  CORELANE_TRY(enumerator("placement", options.placement, PlacementPolicy::kAdaptive));
  CORELANE_TRY(enumerator("layout", options.layout, InputLayout::kAny));
  CORELANE_TRY(enumerator("input_rules", options.input_rules, InputRules::kLenient));
  return enumerator("output_form", options.output_form, OutputForm::kRaw);
}

}  // namespace

Result<std::vector<std::size_t>> parse_schedule(std::string_view text) {
  std::string_view rest = trimmed(text, kBlanks);
  if (rest.starts_with('[') != rest.ends_with(']') || rest == "[")
    return bad_schedule(text, "has one bracket only");
  if (rest.starts_with('[')) rest = trimmed(rest.substr(1, rest.size() - 2), kBlanks);
  if (rest.empty()) return bad_schedule(text, "must not be empty");
  std::vector<std::size_t> cores;
  bool separated = true;  // After a comma, or at the start.
  while (!rest.empty()) {
    const std::string_view token = rest.substr(0, rest.find_first_of(", \t\n\r"));
    if (token.empty()) {  // At a comma.
      if (separated) return bad_schedule(text, "has a comma without a number before it");
      separated = true;
      rest = trimmed(rest.substr(1), kBlanks);
      continue;
    }
    const auto core = parse_number<std::size_t>(token);
    if (!core)
      return bad_schedule(text, fmt::format("has '{}', which is not a core number", token));
    cores.push_back(*core);
    separated = false;
    rest = trimmed(rest.substr(token.size()), kBlanks);
  }
  if (separated) return bad_schedule(text, "ends in a comma");
  return cores;
}

Result<TpMode> parse_tp_mode(std::string_view text) {
  return read_word(kTpModes, text, "tp_mode", "auto, all, 0, 1, 2, \"0,1\" and \"0,1,2\"");
}

std::string_view tp_mode_name(TpMode mode) noexcept { return name_of(kTpModes, mode); }

Result<InputLayout> parse_input_layout(std::string_view text) {
  return read_word(kLayouts, text, "layout",
                   "original (nchw), original_software (nchw_software), nhwc and any");
}

std::string_view input_layout_name(InputLayout layout) noexcept {
  return name_of(kLayouts, layout);
}

Result<PlacementPolicy> parse_placement(std::string_view text) {
  return read_word(kPlacements, text, "placement", "formula, least_loaded and adaptive");
}

std::string_view placement_name(PlacementPolicy policy) noexcept {
  return name_of(kPlacements, policy);
}

device::CoreSet cores_of(TpMode mode) noexcept {
  if (mode == TpMode::kAll) return device::CoreSet::platform();
  // Bit i is core i.
  // In the order of the enumerators; 0 leaves the choice of a core to the device.
  static constexpr std::uint64_t kMasks[] = {0, 0, 0b001, 0b010, 0b100, 0b011, 0b111};
  const std::uint64_t mask = kMasks[static_cast<std::size_t>(mode)];
  return mask == 0 ? device::CoreSet::any() : device::CoreSet::mask(mask);
}

Status check(const SessionOptions& options, std::size_t cores) {
  CORELANE_TRY(check_enumerators(options));
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
  if (options.run_timeout < Duration{0}) {
    return error(Code::kInvalidArgument, "run_timeout is {} ns; 0 means none",
                 options.run_timeout.count());
  }
  const std::string there = fmt::format("{} core{}", cores, cores == 1 ? "" : "s");
  for (const std::size_t core : options.schedule) {
    if (core < cores && core < device::CoreSet::kMaxCores) continue;
    // The check before a device is opened: its cores are not known yet.
    if (cores >= device::CoreSet::kMaxCores) {
      return error(Code::kOutOfCores, "schedule names core {}; no device has more than {} cores",
                   core, device::CoreSet::kMaxCores);
    }
    return error(Code::kOutOfCores, "schedule names core {}; the device has {}, numbered from 0",
                 core, there);
  }
  if (!options.tp_mode) return {};
  const auto refused = [&](std::string_view why) {
    const std::string_view mode = tp_mode_name(*options.tp_mode);
    return error(Code::kOutOfCores, "tp_mode '{}' {}; the device has {}, numbered from 0", mode,
                 why, there)
        .with(Detail::kGiven, fmt::format("tp_mode {}", mode))
        .with(Detail::kLimit, there);
  };
  // A CoreSet of the platform's choice would fit, but the mode promises several cores.
  if (options.tp_mode == TpMode::kAll && cores == 1)
    return refused("joins cores, of which there must be two: use 'auto' or '0'");
  const device::CoreSet wanted = cores_of(*options.tp_mode);
  if (wanted.is_mask() && !wanted.check(cores).ok())
    return refused("names a core that is not there");
  return {};
}

}  // namespace corelane
