#include "device/registry/device_profile.h"

#include <algorithm>

#include "base/text_parts.h"

namespace corelane::device {
namespace {

/// A device of N cores that models no chip.
constexpr std::string_view kGeneric = "generic:";

/// N of "generic:N"; 0 for anything else.
std::size_t generic_cores(const DriverDescription& driver, std::string_view profile) {
  if (!profile.starts_with(kGeneric)) return 0;
  const auto cores = parse_number<std::size_t>(profile.substr(kGeneric.size())).value_or(0);
  return cores <= driver.most_generic_cores ? cores : 0;
}

const ChipRow* find_chip(const DriverDescription& driver, std::string_view profile) {
  const auto found = std::find_if(driver.chips.begin(), driver.chips.end(),
                                  [&](const ChipRow& chip) { return chip.name == profile; });
  return found == driver.chips.end() ? nullptr : &*found;
}

std::string known_profiles(const DriverDescription& driver) {
  std::string text;
  for (const ChipRow& chip : driver.chips) text += (text.empty() ? "" : ", ") + chip.name;
  if (driver.most_generic_cores == 0) return text;
  return fmt::format("{}{}{}N with N from 1 to {}", text, text.empty() ? "" : " or ", kGeneric,
                     driver.most_generic_cores);
}

}  // namespace

Result<DeviceSpec> complete(const DriverDescription& driver, DeviceSpec spec) {
  if (spec.profile.empty())
    spec.profile = driver.chips.empty() ? fmt::format("{}1", kGeneric) : driver.chips.front().name;
  if (find_chip(driver, spec.profile) == nullptr) {
    const std::size_t cores = generic_cores(driver, spec.profile);
    if (cores == 0)
      return error(Code::kInvalidArgument, "device profile '{}' is not known to '{}'; use {}",
                   spec.profile, driver.kind, known_profiles(driver));
    // "generic:04" and "generic:4" are one device.
    spec.profile = fmt::format("{}{}", kGeneric, cores);
  }
  const auto name = spec.options.find("name");
  if (name != spec.options.end() && name->second == "0") spec.options.erase(name);
  return spec;
}

DeviceInfo describe(const DriverDescription& driver, const DeviceSpec& spec) {
  const ChipRow* chip = find_chip(driver, spec.profile);
  const std::size_t cores = chip == nullptr ? generic_cores(driver, spec.profile) : chip->cores;
  const auto name = spec.options.find("name");
  DeviceInfo info;
  info.kind = spec.kind;
  info.profile = spec.profile;
  info.instance = fmt::format("{}:{}#{}", spec.kind, spec.profile,
                              name == spec.options.end() ? "0" : name->second);
  for (std::size_t i = 0; i < cores; ++i)
    info.cores.push_back({"core" + std::to_string(i), chip == nullptr ? 0 : chip->clock_hz});
  info.capabilities = driver.capabilities;
  return info;
}

std::vector<std::string> example_texts(const DriverDescription& driver) {
  std::vector<std::string> texts;
  for (const ChipRow& chip : driver.chips) texts.push_back(driver.kind + ":" + chip.name);
  if (driver.most_generic_cores > 0)
    texts.push_back(fmt::format("{}:{}{}", driver.kind, kGeneric,
                                std::min<std::size_t>(driver.most_generic_cores, 4)));
  texts.insert(texts.end(), driver.examples.begin(), driver.examples.end());
  return texts;
}

}  // namespace corelane::device
