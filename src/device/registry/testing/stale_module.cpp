// A driver module of another build, for the registry's test.
#include "corelane/driver/module.h"

namespace {

constexpr corelane::device::DriverModule kModule = {"another tree/another compiler", nullptr,
                                                    nullptr};

}  // namespace

extern "C" CORELANE_API const corelane::device::DriverModule* corelane_driver_module_v1() {
  return &kModule;
}
