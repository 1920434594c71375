/// The boundary between the library and a driver, built in or in a shared object.
///
/// A module exports `corelane_driver_module_v1`, which returns a static DriverModule. Both sides
/// are built from one tree: `build` must be equal, otherwise the module is refused
/// (kVersionMismatch) before any C++ object crosses.
#pragma once

#include <memory>
#include <string_view>

#include "corelane/base/log.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"

namespace corelane::device {

/// What the library lends a module; a module has its own copy of floor 1.
struct HostServices {
  log::Callback log;
  log::Level log_level = log::Level::kWarn;
};

struct DriverModule {
  const char* build;     ///< CORELANE_DRIVER_BUILD of the module.
  const char* kind;      ///< "virtual".
  const char* profiles;  ///< Comma-separated examples, "virtual:rk3588,virtual:generic:4".
  /// Opens a device; options.clock is set, options.fault_point may be null. Never throws.
  Result<std::shared_ptr<Device>> (*open)(const DeviceSpec& spec, const OpenOptions& options,
                                          const HostServices& services);
};

/// Version of tree, compiler ABI and standard library.
#define CORELANE_DRIVER_BUILD CORELANE_VERSION_STRING "/" __VERSION__

using DriverModuleEntry = const DriverModule* (*)();
inline constexpr const char* kDriverModuleSymbol = "corelane_driver_module_v1";

/// Core profiles that several drivers share: "rk3588" 3 cores, "rk3576" 2, "rk3568",
/// "rk3566" and "rk3562" 1, "aic100" 16, "generic:N" 1 to 64. kInvalidArgument with the list.
Result<DeviceInfo> device_profile(std::string_view kind, std::string_view profile);
/// The name of an instance in leases and traces: "virtual:rk3588#0", or "#left" by `name=left`.
std::string instance_name(const DeviceSpec& spec);

}  // namespace corelane::device
