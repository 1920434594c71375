/// The version, and what is known of devices.
#include <algorithm>
#include <limits>
#include <string_view>

#include "adapters/qaic/api/qaic_edge.h"
#include "adapters/qaic/context/qaic_device_lock.h"
#include "adapters/qaic/context/qaic_devices.h"
#include "adapters/qaic/context/qaic_resources.h"
#include "corelane/base/api.h"
#include "corelane/device/device.h"
#include "qaic_ours.h"

namespace corelane::qaic {
namespace {

/// Cut to fit, ended by a 0.
template <std::size_t kSize>
void copy_text(std::string_view text, char (&to)[kSize]) {
  const std::size_t count = std::min(text.size(), kSize - 1);
  std::copy_n(text.begin(), count, to);
  std::fill(to + count, to + kSize, '\0');
}

template <class T>
T clamped(std::uint64_t value) {
  return static_cast<T>(std::min<std::uint64_t>(value, std::numeric_limits<T>::max()));
}

QResourceInfo resources_of(QID number, const device::Device& device) {
  const DeviceRoom room = room_of(device, takes_leases(number));
  QResourceInfo info;
  // The API counts memory in KiB.
  info.dramTotal = room.memory / 1024;
  info.dramFree = room.free_memory / 1024;
  info.nspTotal = clamped<std::uint8_t>(room.cores);
  info.nspFree = clamped<std::uint8_t>(room.free_cores);
  return info;
}

QPerformanceInfo performance_of(const device::Device& device) {
  QPerformanceInfo info;
  const auto& cores = device.info().cores;
  if (!cores.empty()) info.nspFrequencyHz = clamped<std::uint32_t>(cores.front().clock_hz);
  return info;
}

QDevStatus status_of(const device::Device& device) {
  return device.health() == device::Health::kLost ? QDS_ERROR : QDS_READY;
}

QDevInfo info_of(QID number, const device::Device& device) {
  const device::DeviceInfo& from = device.info();
  QDevInfo info;
  info.devStatus = status_of(device);
  info.qid = number;
  copy_text("Processing accelerators", info.pciInfo.classname);
  copy_text("Corelane", info.pciInfo.vendorname);
  copy_text(fmt::format("{}:{}", from.kind, from.profile), info.pciInfo.devicename);
  copy_text(from.instance, info.name);
  info.devData.fwVersionMajor = CORELANE_VERSION_MAJOR;
  info.devData.fwVersionMinor = CORELANE_VERSION_MINOR;
  info.devData.fwVersionPatch = CORELANE_VERSION_PATCH;
  copy_text(from.engine, info.devData.fwQCImageVersionString);
  copy_text(from.isa, info.devData.fwImageVariantString);
  info.devData.numActiveNWs = clamped<std::uint8_t>(device.holdings().size());
  info.devData.resourceInfo = resources_of(number, device);
  info.devData.performanceInfo = performance_of(device);
  auto& cores = info.nspData.nspFwVersion;
  cores.major = CORELANE_VERSION_MAJOR;
  cores.minor = CORELANE_VERSION_MINOR;
  cores.patch = CORELANE_VERSION_PATCH;
  copy_text(from.engine, cores.qc);
  copy_text(from.isa, cores.variant);
  return info;
}

/// The device of this number for `fill`, which writes to `to`.
template <class T, class Fill>
QStatus describe(const char* function, QID number, T* to, Fill&& fill) noexcept {
  return guard(function, [&]() -> Outcome {
    if (to == nullptr) return outcome(QS_INVAL, "the structure to be filled is null");
    const auto device = open_device(number);
    if (!device) return device_outcome(device.error());
    *to = fill(**device);
    return {};
  });
}

}  // namespace
}  // namespace corelane::qaic

using namespace corelane::qaic;  // NOLINT(google-build-using-namespace)

QAIC_EXPORT QStatus qaicGetAicVersion(uint16_t* major, uint16_t* minor, const char** patch,
                                      const char** variant) {
  return guard(__func__, [&]() -> Outcome {
    if (major == nullptr || minor == nullptr || patch == nullptr || variant == nullptr)
      return outcome(QS_INVAL, "major, minor, patch or variant is null");
    *major = LRT_LIB_MAJOR_VERSION;
    *minor = LRT_LIB_MINOR_VERSION;
    *patch = corelane::version();
    *variant = "corelane";
    return {};
  });
}

extern "C" QStatus qaicGetDeviceIds(uint32_t* numDevices, QID* devices) {
  return guard(__func__, [&]() -> Outcome {
    if (numDevices == nullptr) return outcome(QS_INVAL, "numDevices is null");
    CORELANE_ASSIGN(const auto texts, device_texts());
    const auto count = static_cast<uint32_t>(texts.size());
    for (uint32_t i = 0; devices != nullptr && i < std::min(count, *numDevices); ++i)
      devices[i] = static_cast<QID>(i);
    // The number is given also where the list was null or too short, so that the caller learns it.
    *numDevices = count;
    return {};
  });
}

QAIC_EXPORT QStatus qaicGetDeviceInfo(QID device, QDevInfo* devInfo) {
  return describe(__func__, device, devInfo,
                  [&](const auto& found) { return info_of(device, found); });
}

QAIC_EXPORT QStatus qaicGetResourceInfo(QID device, QResourceInfo* resourceInfo) {
  return describe(__func__, device, resourceInfo,
                  [&](const auto& found) { return resources_of(device, found); });
}

extern "C" QStatus qaicGetPerformanceInfo(QID device, QPerformanceInfo* performanceInfo) {
  return describe(__func__, device, performanceInfo, performance_of);
}

extern "C" QStatus qaicLockDevice(QID device, bool lock, bool block) {
  return guard(__func__, [&]() -> Outcome {
    // First: where locks are off the answer is QS_UNSUPPORTED, also for giving one back.
    CORELANE_ASSIGN(const auto limit, lock_limit());
    const auto found = open_device(device);
    if (!found) return device_outcome(found.error());
    const std::string& instance = (*found)->info().instance;
    if (!lock) return device_locks().give(instance);
    return device_locks().take(instance, block ? limit : corelane::Duration{0});
  });
}
