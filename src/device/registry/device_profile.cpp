#include <charconv>

#include "corelane/driver/module.h"

namespace corelane::device {
namespace {

struct Profile {
  std::string_view name;
  std::size_t cores;
  std::uint64_t clock_hz;
};
constexpr Profile kProfiles[] = {{"rk3588", 3, 1'000'000'000}, {"rk3576", 2, 950'000'000},
                                 {"rk3568", 1, 600'000'000},   {"rk3566", 1, 600'000'000},
                                 {"rk3562", 1, 1'000'000'000}, {"aic100", 16, 1'450'000'000}};

DeviceInfo describe(std::string_view kind, std::string_view profile, std::size_t cores,
                    std::uint64_t clock_hz) {
  DeviceInfo info;
  info.kind = kind;
  info.profile = profile;
  info.instance = fmt::format("{}:{}#0", kind, profile);
  for (std::size_t i = 0; i < cores; ++i)
    info.cores.push_back({"core" + std::to_string(i), clock_hz});
  return info;
}

}  // namespace

Result<DeviceInfo> device_profile(std::string_view kind, std::string_view profile) {
  if (profile.empty()) profile = kProfiles[0].name;
  for (const Profile& p : kProfiles)
    if (p.name == profile) return describe(kind, profile, p.cores, p.clock_hz);
  constexpr std::string_view kGeneric = "generic:";
  if (profile.substr(0, kGeneric.size()) == kGeneric) {
    const std::string_view digits = profile.substr(kGeneric.size());
    std::size_t cores = 0;
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), cores);
    if (problem == std::errc() && end == digits.data() + digits.size() && cores >= 1 &&
        cores <= CoreSet::kMaxCores)
      return describe(kind, profile, cores, 0);
  }
  return error(
      Code::kInvalidArgument,
      "device profile '{}' is not known; use rk3588, rk3576, rk3568, rk3566, rk3562, aic100 "
      "or generic:N with N from 1 to {}",
      profile, CoreSet::kMaxCores);
}

std::string instance_name(const DeviceSpec& spec) {
  const auto name = spec.options.find("name");
  return fmt::format("{}:{}#{}", spec.kind, spec.profile.empty() ? "rk3588" : spec.profile,
                     name == spec.options.end() ? "0" : name->second);
}

}  // namespace corelane::device
