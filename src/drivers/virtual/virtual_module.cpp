/// The export of libcorelane_virtual.so.
#include <utility>

#include "corelane/base/log.h"
#include "corelane/driver/module.h"
#include "drivers/virtual/virtual_device.h"

namespace {

/// The module has its own copy of the log, which passes its lines to the library's.
void take_services(const corelane::device::HostServices& services) {
  corelane::log::set_level(services.log_level);
  if (services.log) corelane::log::set_callback(services.log);
}

corelane::Result<std::shared_ptr<corelane::device::Device>> open_module_device(
    const corelane::device::DeviceSpec& spec, const corelane::device::OpenOptions& options,
    const corelane::device::HostServices& services) {
  take_services(services);
  return corelane::drivers::virtual_npu::open_virtual_device(spec, options);
}

constexpr corelane::device::DriverModule kModule = {
    CORELANE_DRIVER_BUILD,
    "virtual",
    "virtual:rk3588,virtual:rk3576,virtual:rk3568,virtual:rk3566,virtual:rk3562,virtual:aic100,"
    "virtual:generic:4",
    &open_module_device,
};

}  // namespace

extern "C" CORELANE_API const corelane::device::DriverModule* corelane_driver_module_v1() {
  return &kModule;
}
