// A driver module whose description throws, for the registry's test.
#include <stdexcept>

#include "corelane/driver/module.h"

namespace {

const corelane::device::DriverDescription& describe() { throw std::runtime_error("no chip table"); }

corelane::Result<corelane::device::OpenedEngine> open_engine(
    const corelane::device::OpenRequest& request) {
  return corelane::device::OpenedEngine{request.info, nullptr};
}

constexpr corelane::device::DriverModule kModule = {CORELANE_DRIVER_BUILD, &describe, &open_engine};

}  // namespace

extern "C" CORELANE_API const corelane::device::DriverModule* corelane_driver_module_v1() {
  return &kModule;
}
