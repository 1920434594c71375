// `corelane devices`: lists the drivers of this installation, opens one device and prints its
// cores, engine, health and capabilities.
#include <fmt/format.h>

#include "cli/command.h"
#include "corelane/device/device.h"
#include "corelane/device/lease.h"
#include "corelane/device/registry.h"

namespace corelane::cli {
namespace {

/// Limits that the device's text gives it; 0: none.
Json capacity_of(const device::Device& dev) {
  const auto& info = dev.info();
  return {{"cores", info.cores.size()},
          {"memory_limit", info.memory_limit},
          {"memory_used", dev.memory().total()},
          {"depth_limit", info.depth_limit}};
}

/// Residences of this process, and cores that others have by leases.
Result<Json> holders_of(const device::Device& dev) {
  Json held = Json::array();
  for (const auto& holding : dev.holdings())
    held.push_back({{"cores", holding.cores.to_string()},
                    {"by", "residence"},
                    {"exclusive", holding.residency == device::Residency::kExclusive},
                    {"programs", holding.executables}});
  CORELANE_ASSIGN(const auto leases,
                  device::Lease::holders(dev.info().instance, dev.info().cores.size()));
  for (const auto& lease : leases)
    held.push_back({{"cores", std::to_string(lease.core)},
                    {"by", "lease"},
                    {"process", lease.process},
                    {"program", lease.program}});
  return held;
}

std::string limit_text(std::size_t limit, std::string_view unit) {
  return limit == 0 ? "no limit" : fmt::format("{} {}", limit, unit);
}

std::string process_text(const Json& lease) {
  const auto program = lease["program"].get<std::string>();
  return lease["process"].get<std::string>() + (program.empty() ? "" : " (" + program + ")");
}

std::string holders_text(const Json& held) {
  std::string text;
  for (const auto& one : held) {
    const bool lease = one["by"] == "lease";
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", one["cores"].get<std::string>(),
                        lease ? "by process " + process_text(one)
                              : fmt::format("for {} programs here", one["programs"].size()));
  }
  return text.empty() ? "nobody" : text;
}

Json describe(const device::Device& dev) {
  const auto& info = dev.info();
  Json cores = Json::array();
  for (const auto& c : info.cores) cores.push_back({{"name", c.name}, {"clock_hz", c.clock_hz}});
  return {{"kind", info.kind},
          {"profile", info.profile},
          {"instance", info.instance},
          {"engine", info.engine},
          {"isa", info.isa},
          {"health", dev.health() == device::Health::kGood       ? "good"
                     : dev.health() == device::Health::kDegraded ? "degraded"
                                                                 : "lost"},
          {"cores", cores},
          {"images", info.capabilities.image_kinds},
          {"capabilities",
           {{"multi_core_jobs", info.capabilities.multi_core_jobs},
            {"dynamic_shapes", info.capabilities.dynamic_shapes},
            {"exposed_values", info.capabilities.exposed_values},
            {"host_operators", info.capabilities.host_operators},
            {"layer_times", info.capabilities.layer_times},
            {"precompiled", info.capabilities.precompiled}}}};
}

Result<int> run(const Global& global, const std::string& spec) {
  Json out;
  out["drivers"] = Json::array();
  // No engine is loaded for the list; open_device() below loads one.
  for (const auto& d : device::list_drivers())
    out["drivers"].push_back({{"kind", d.kind}, {"origin", d.origin}, {"examples", d.profiles}});
  CORELANE_ASSIGN(auto dev, device::open_device(spec));
  out["device"] = describe(*dev);
  out["device"]["capacity"] = capacity_of(*dev);
  CORELANE_ASSIGN(out["device"]["held"], holders_of(*dev));
  std::string text = "Drivers\n";
  for (const auto& d : out["drivers"]) {
    text += fmt::format("  {:<10} {}  e.g.", d["kind"].get<std::string>(),
                        d["origin"].get<std::string>());
    for (const auto& p : d["examples"]) text += " " + p.get<std::string>();
    text += "\n";
  }
  const auto& v = out["device"];
  text +=
      fmt::format("Device {}\n  engine  {} ({})\n  cores   {}\n  health  {}\n  can     ",
                  v["instance"].get<std::string>(), v["engine"].get<std::string>(),
                  v["isa"].get<std::string>(), v["cores"].size(), v["health"].get<std::string>());
  for (const auto& [key, value] : v["capabilities"].items())
    if (value.get<bool>()) text += key + " ";
  const auto& capacity = v["capacity"];
  text += fmt::format("\n  memory  {} used, {}\n  line    {}\n  held    {}",
                      capacity["memory_used"].get<std::size_t>(),
                      limit_text(capacity["memory_limit"].get<std::size_t>(), "bytes at most"),
                      limit_text(capacity["depth_limit"].get<std::size_t>(), "jobs at most"),
                      holders_text(v["held"]));
  print(global, out, text + "\n");
  return kExitOk;
}

}  // namespace

Action add_devices(CLI::App& parent, Global& global) {
  auto* app = parent.add_subcommand("devices", "List drivers and show a device");
  auto spec = std::make_shared<std::string>();
  app->add_option(
      "device", *spec,
      "Device to open (default: CORELANE_DEVICE, else " + device::default_device() + ")");
  return [&global, spec] { return run(global, *spec); };
}

}  // namespace corelane::cli
