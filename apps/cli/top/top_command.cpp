// `corelane top`: the cores of devices by who holds them, and how busy they are, again and again.
#include "cli/top/top_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "cli/options.h"
#include "cli/top/core_watch.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"

namespace corelane::cli {
namespace {

struct Arguments {
  std::vector<std::string> devices;
  std::uint64_t rounds = 0;
  double period = 1;
};

/// A device that is watched. It is open, so that its name and its cores are known.
using Devices = std::vector<std::shared_ptr<device::Device>>;

Result<Devices> open_devices(const std::vector<std::string>& texts) {
  Devices devices;
  for (const std::string& text : texts) {
    CORELANE_ASSIGN(auto device, device::open_device(text));
    devices.push_back(std::move(device));
  }
  if (!devices.empty()) return devices;
  CORELANE_ASSIGN(auto device, device::open_device());
  devices.push_back(std::move(device));
  return devices;
}

Result<std::vector<WatchedCore>> look(const Devices& devices) {
  std::vector<WatchedCore> cores;
  for (const auto& device : devices) {
    const auto& info = device->info();
    CORELANE_ASSIGN(const auto holders, device::Lease::holders(info.instance, info.cores.size()));
    for (std::size_t i = 0; i < info.cores.size(); ++i) {
      WatchedCore& core = cores.emplace_back(WatchedCore{info.instance, i, std::nullopt});
      const auto found = std::ranges::find(holders, i, &device::Lease::Holder::core);
      if (found != holders.end()) core.holder = *found;
    }
  }
  return cores;
}

/// Rewrites its table in place. Nothing of the terminal is changed that would have to be put back,
/// so that a signal at any moment leaves it as it was.
class Screen {
 public:
  void show(const std::string& table) {
    // Up to the first line of the table before, and away with what follows.
    if (lines_ > 0) std::fputs(fmt::format("\x1b[{}A\x1b[J", lines_).c_str(), stdout);
    print(table);
    std::fflush(stdout);
    lines_ = std::ranges::count(table, '\n');
  }

 private:
  std::ptrdiff_t lines_ = 0;
};

Result<int> run(const Global& global, const Arguments& a) {
  CORELANE_ASSIGN(const Devices devices, open_devices(a.devices));
  const bool terminal = !global.json && ::isatty(STDOUT_FILENO) == 1;
  const Interrupts interrupts;
  Screen screen;
  Json rounds = Json::array();
  const auto show = [&](const std::vector<CoreRow>& rows, Duration between) {
    if (global.json) return rounds.push_back(watch_json(rows, between));
    if (terminal) return screen.show(watch_table(rows));
    print(watch_table(rows));
    std::fflush(stdout);
  };
  CoreWatch watch(real_clock(),
                  {[&] { return look(devices); }, show, [] { return Interrupts::pending(); },
                   [](TimePoint until) { std::this_thread::sleep_until(until); }});
  // Without a terminal nobody ends it.
  const std::uint64_t count = a.rounds > 0 || terminal ? a.rounds : 1;
  CORELANE_TRY(watch.run(count, Duration(static_cast<std::int64_t>(a.period * 1e9))));
  if (global.json) print_json({{"rounds", rounds}});
  return Interrupts::pending() ? kExitInterrupted : kExitOk;
}

}  // namespace

Action add_top(CLI::App& parent, Global& global) {
  auto* app =
      parent.add_subcommand("top", "Show who holds the cores of devices, and how busy they are");
  auto a = std::make_shared<Arguments>();
  app->add_option("devices", a->devices,
                  "Devices whose texts say lease=1 elsewhere (default: CORELANE_DEVICE, else " +
                      device::default_device() + ")");
  app->add_option("-n,--rounds", a->rounds,
                  "Tables, then it ends (default: until Ctrl-C; one without a terminal)")
      ->check(between(1, 1e9));
  app->add_option("--period", a->period, "Seconds between them")
      ->capture_default_str()
      ->check(between(0.05, 3600));
  return [&global, a] { return run(global, *a); };
}

}  // namespace corelane::cli
