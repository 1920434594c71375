/// The export of libcorelane_virtual.so.
#include "corelane/base/log.h"
#include "corelane/driver/module.h"
#include "drivers/virtual/virtual_engine.h"

namespace {

corelane::Result<corelane::device::OpenedEngine> open_engine(
    const corelane::device::OpenRequest& request) {
  // The module has its own copy of the log, which passes its lines to the library's.
  corelane::log::set_level(request.services.log_level);
  if (request.services.log) corelane::log::set_callback(request.services.log);
  return corelane::drivers::virtual_npu::open_virtual_engine(request);
}

constexpr corelane::device::DriverModule kModule = {
    CORELANE_DRIVER_BUILD, &corelane::device::describe_virtual, &open_engine};

}  // namespace

extern "C" CORELANE_API const corelane::device::DriverModule* corelane_driver_module_v1() {
  return &kModule;
}
