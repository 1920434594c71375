// A driver module that opens a null device, for the registry's test.
#include "base/leaked.h"
#include "corelane/driver/module.h"

namespace {

const corelane::device::DriverDescription& describe() {
  static corelane::Leaked<const corelane::device::DriverDescription> description([] {
    corelane::device::DriverDescription d;
    d.kind = "hollow";
    d.chips = {{"duo", 2, 0}};
    return d;
  }());
  return *description;
}

corelane::Result<std::shared_ptr<corelane::device::Device>> open_device(
    const corelane::device::OpenRequest&) {
  return std::shared_ptr<corelane::device::Device>();
}

constexpr corelane::device::DriverModule kModule = {CORELANE_DRIVER_BUILD, &describe, nullptr,
                                                    &open_device};

}  // namespace

extern "C" CORELANE_API const corelane::device::DriverModule* corelane_driver_module_v1() {
  return &kModule;
}
