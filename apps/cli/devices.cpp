// `corelane devices`: lists the drivers of this installation, opens one device and prints its
// cores, engine, health and capabilities.
#include <fmt/format.h>

#include "cli/command.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"

namespace corelane::cli {
namespace {

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
