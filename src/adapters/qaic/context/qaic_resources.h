/// What of a device is free: cores that nobody holds, and memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "QAicApi.h"
#include "corelane/base/status.h"

namespace corelane::device {
class Device;
}

namespace corelane::qaic {

class ContextObject;

/// A snapshot. Memory in bytes: of the device's limit, else of the host.
struct DeviceRoom {
  std::size_t cores = 0;
  std::size_t free_cores = 0;
  std::uint64_t memory = 0;
  std::uint64_t free_memory = 0;
};

/// `leases`: cores that other processes hold count as held. Any thread.
DeviceRoom room_of(const device::Device& device, bool leases);

/// What a program needs of a device.
struct DeviceNeed {
  std::size_t cores = 0;
  std::uint64_t memory = 0;  ///< Bytes.
};

/// The devices of the context that are not lost and have that free, one at least. kNotFound says
/// what each device lacks. Any thread.
Result<std::vector<QID>> find_devices(const ContextObject& context, const DeviceNeed& need);

}  // namespace corelane::qaic
