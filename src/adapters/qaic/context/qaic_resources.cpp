#include "adapters/qaic/context/qaic_resources.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <fstream>

#include "adapters/qaic/context/qaic_context.h"
#include "adapters/qaic/context/qaic_devices.h"
#include "corelane/device/device.h"
#include "corelane/device/lease.h"

namespace corelane::qaic {
namespace {

/// Bytes of the host that programs may still take; 0 where the system does not say.
std::uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name, rest;
  for (std::uint64_t kib = 0; file >> name >> kib; std::getline(file, rest))
    if (name == "MemAvailable:") return kib * 1024;
  return 0;
}

std::uint64_t host_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long size = sysconf(_SC_PAGESIZE);
  return pages < 0 || size < 0
             ? 0
             : static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size);
}

/// As bits, and not counted: the leases of other processes and this one's holdings overlap.
std::uint64_t held_cores(const device::Device& device, bool leases) {
  std::uint64_t held = 0;
  for (const device::Holding& holding : device.holdings()) held |= holding.cores.bits();
  if (!leases) return held;
  const device::DeviceInfo& info = device.info();
  const auto holders = device::Lease::holders(info.instance, info.cores.size());
  // Where the locks cannot be read, the cores of this process are what is known.
  if (!holders) return held;
  for (const auto& holder : *holders) held |= device::CoreSet::of({holder.core}).bits();
  return held;
}

/// What the device lacks; empty where it has room.
std::string lack(const device::Device& device, const DeviceRoom& room, const DeviceNeed& need) {
  if (device.health() == device::Health::kLost) return "it is lost";
  if (need.cores > room.cores)
    return fmt::format("{} cores are needed, it has {}", need.cores, room.cores);
  if (need.cores > room.free_cores) {
    return fmt::format("{} cores are needed, {} of its {} are free", need.cores, room.free_cores,
                       room.cores);
  }
  if (need.memory > room.free_memory) {
    return fmt::format("{} KiB are needed, {} of its {} are free", need.memory / 1024,
                       room.free_memory / 1024, room.memory / 1024);
  }
  return {};
}

}  // namespace

DeviceRoom room_of(const device::Device& device, bool leases) {
  DeviceRoom room;
  const device::DeviceInfo& info = device.info();
  room.cores = info.cores.size();
  const auto held = static_cast<std::size_t>(std::popcount(held_cores(device, leases)));
  room.free_cores = room.cores - std::min(room.cores, held);
  if (info.memory_limit == 0) {
    room.memory = host_memory();
    room.free_memory = available_memory();
  } else {
    room.memory = info.memory_limit;
    room.free_memory = room.memory - std::min<std::uint64_t>(room.memory, device.memory().total());
  }
  return room;
}

Result<std::vector<QID>> find_devices(const ContextObject& context, const DeviceNeed& need) {
  std::vector<QID> found;
  std::string lacks;
  for (const QID number : context.devices()) {
    CORELANE_ASSIGN(const auto device, context.device(number));
    const std::string lacking = lack(*device, room_of(*device, takes_leases(number)), need);
    if (lacking.empty()) found.push_back(number);
    lacks += fmt::format("; device {} ({}): {}", number, device->info().instance, lacking);
  }
  if (!found.empty()) return found;
  return error(Code::kNotFound,
               "no device of context {} can hold the program now{}; deactivate other programs, or "
               "make the context of more devices",
               context.id(), lacks);
}

}  // namespace corelane::qaic
