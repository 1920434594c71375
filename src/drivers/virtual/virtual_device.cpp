#include "drivers/virtual/virtual_device.h"

#include <utility>

#include "corelane/driver/module.h"
#include "drivers/virtual/engine/engine_runtime.h"
#include "drivers/virtual/virtual_engine.h"

namespace corelane::drivers::virtual_npu {

Result<std::shared_ptr<device::Device>> open_virtual_device(const device::DeviceSpec& spec,
                                                            const device::OpenOptions& options) {
  try {
    for (const auto& [key, value] : spec.options)
      if (key != "name")
        return error(Code::kInvalidArgument, "option '{}={}' is unknown; 'virtual' takes name=...",
                     key, value);
    CORELANE_ASSIGN(
        device::DeviceInfo info,
        device::device_profile("virtual", spec.profile.empty() ? "rk3588" : spec.profile));
    info.instance = device::instance_name(spec);
    describe_engine(info);
    device::LaneOptions lanes;
    if (options.clock) lanes.clock = options.clock;
    lanes.fault_point = options.fault_point;
    auto engine = make_virtual_engine(info.cores.size());
    return device::make_laned_device(std::move(info), std::move(engine), lanes);
  } catch (...) {
    return error(status_of_exception(Code::kInternal, "opening the virtual NPU"));
  }
}

}  // namespace corelane::drivers::virtual_npu
