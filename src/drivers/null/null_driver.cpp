// The null device's entry in the registration table, and where the next driver starts: copy this
// folder, name it in CORELANE_DRIVERS, and replace
//  - null_script by the options of your device's text,
//  - null_image by what reads your images,
//  - null_engine and null_request by LaneEngine, LaneProgram and LaneRequest over your engine.
// Queues, priorities, deadlines, reset, buffers and traces come from make_laned_device(). Then hold
// it to tests/conformance with a fixture of some forty lines.
#include "corelane/driver/lane_engine.h"
#include "corelane/driver/module.h"
#include "drivers/null/null_engine.h"

namespace corelane::device {
namespace {

Result<std::shared_ptr<Device>> open_null(const DeviceSpec& spec, const OpenOptions& options,
                                          const HostServices&) {
  CORELANE_ASSIGN(DeviceInfo info, device_profile(spec.kind, spec.profile));
  CORELANE_ASSIGN(drivers::null::Script script,
                  drivers::null::read_script(spec, info.cores.size()));
  info.instance = instance_name(spec);
  info.engine = "none";
  info.capabilities.multi_core_jobs = true;
  info.capabilities.dynamic_shapes = true;
  info.capabilities.image_kinds = {"null", "onnx", "rknn"};
  LaneOptions lanes;
  lanes.clock = options.clock;
  lanes.fault_point = options.fault_point;
  auto engine = std::make_shared<drivers::null::NullEngine>(std::move(script), options.clock);
  return make_laned_device(std::move(info), std::move(engine), lanes);
}

constexpr DriverModule kModule = {CORELANE_DRIVER_BUILD, "null",
                                  "null:rk3588,null:generic:4,null:rk3588?a=1ms&b=100us",
                                  &open_null};

}  // namespace

const DriverModule* driver_null();
const DriverModule* driver_null() { return &kModule; }

}  // namespace corelane::device
