#include "corelane/device/registry.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "base/fork.h"
#include "corelane/base/log.h"
#include "device/registry/device_wrappers.h"
#include "device/registry/driver_loader.h"
#include "device/registry/driver_table.h"

namespace corelane::device {
namespace {

constexpr std::string_view kDefaultDevice = "virtual:rk3588";

std::vector<std::string> split_profiles(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    parts.emplace_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

std::string known_kinds() {
  std::string text;
  for (const DriverInfo& driver : list_drivers()) text += (text.empty() ? "" : ", ") + driver.kind;
  return text.empty() ? "none" : text;
}

Result<const DriverModule*> find_driver(const std::string& kind) {
  for (const DriverRow& row : driver_table())
    if (row.entry != nullptr && kind == row.kind) return row.entry();
  auto module = load_module(kind);
  if (module || module.error().code() != Code::kNotFound) return module;
  return error(Code::kNotFound,
               "no driver for devices '{}'; known kinds: {}; looked in the library and for {}. Set "
               "CORELANE_DEVICE or CORELANE_DRIVER_PATH",
               kind, known_kinds(), module.error().message());
}

HostServices host_services() {
  return {[](log::Level level, std::string_view part, std::string_view text) {
            if (log::enabled(level)) log::write(level, part, text);
          },
          log::level()};
}

Result<FaultPlan> environment_faults() {
  const char* text = std::getenv("CORELANE_FAULTS");
  if (text == nullptr || *text == '\0') return FaultPlan{};
  auto plan = parse_faults(text);
  if (!plan) return error(plan.error().wrap("CORELANE_FAULTS cannot be used"));
  return plan;
}

/// The device without the validating wrapper.
Result<std::shared_ptr<Device>> open_bare(const DeviceSpec& spec, OpenOptions options) {
  FaultPlan plan;
  if (options.fault_point == nullptr) {
    CORELANE_ASSIGN(plan, environment_faults());
    if (plan.hang + plan.crash + plan.slow > 0) options.fault_point = planned_faults(plan);
  }
  if (options.clock == nullptr) options.clock = real_clock();
  CORELANE_ASSIGN(const DriverModule* driver, find_driver(spec.kind));
  CORELANE_ASSIGN(std::shared_ptr<Device> device, driver->open(spec, options, host_services()));
  if (plan.short_result + plan.flip + plan.oom > 0) device = wrap_faulty(std::move(device), plan);
  return device;
}

/// Devices of this process by text, so that all who open one share its cores. An executable keeps
/// the bare device alive and not the wrapper, so each is remembered. The threads of devices stay in
/// the parent of a fork: a child opens its own.
struct SharedDevices {
  struct Entry {
    std::weak_ptr<Device> bare;
    std::weak_ptr<Device> validating;
  };
  std::mutex mutex;
  std::map<std::string, Entry> by_text;
};

Result<std::shared_ptr<Device>> open_shared(const DeviceSpec& spec, const OpenOptions& options) {
  SharedDevices& shared = per_process<SharedDevices>();
  // Held while the driver opens: two threads that open one text get one device.
  std::lock_guard guard(shared.mutex);
  std::erase_if(shared.by_text, [](const auto& entry) { return entry.second.bare.expired(); });
  const std::string key = spec.to_string();
  const auto place = shared.by_text.find(key);
  std::shared_ptr<Device> bare =
      place == shared.by_text.end() ? nullptr : place->second.bare.lock();
  if (bare == nullptr) {
    CORELANE_ASSIGN(bare, open_bare(spec, options));
    shared.by_text[key] = {bare, {}};
  }
  if (!options.validate) return bare;
  SharedDevices::Entry& entry = shared.by_text[key];
  if (auto device = entry.validating.lock()) return device;
  auto device = wrap_validating(std::move(bare));
  entry.validating = device;
  return device;
}

}  // namespace

Result<std::shared_ptr<Device>> open_device(std::string_view text, const OpenOptions& options) {
  std::string chosen(text);
  if (chosen.empty()) {
    const char* from_environment = std::getenv("CORELANE_DEVICE");
    chosen = from_environment != nullptr && *from_environment != '\0' ? from_environment
                                                                      : kDefaultDevice;
  }
  CORELANE_ASSIGN(const DeviceSpec spec, parse_device_spec(chosen));
  const bool own =
      options.own_instance || options.clock != nullptr || options.fault_point != nullptr;
  if (!own) return open_shared(spec, options);
  CORELANE_ASSIGN(std::shared_ptr<Device> device, open_bare(spec, options));
  return options.validate ? wrap_validating(std::move(device)) : device;
}

std::vector<DriverInfo> list_drivers() {
  std::vector<DriverInfo> drivers;
  const std::vector<FoundModule> modules = find_modules();
  for (const DriverRow& row : driver_table())
    if (row.entry != nullptr)
      drivers.push_back({row.kind, "built in", split_profiles(row.profiles)});
  for (const FoundModule& module : modules) {
    const auto same = [&](const DriverInfo& d) { return d.kind == module.kind; };
    if (std::any_of(drivers.begin(), drivers.end(), same)) continue;
    std::vector<std::string> profiles = {module.kind};
    for (const DriverRow& row : driver_table())
      if (module.kind == row.kind) profiles = split_profiles(row.profiles);
    drivers.push_back({module.kind, module.path.string(), std::move(profiles)});
  }
  std::sort(drivers.begin(), drivers.end(),
            [](const DriverInfo& a, const DriverInfo& b) { return a.kind < b.kind; });
  return drivers;
}

}  // namespace corelane::device
