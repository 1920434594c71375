// The null device's entry in the registration table, and where the next driver starts: copy this
// folder, name it in CORELANE_DRIVERS, and replace
//  - null_description by what your device is: chips, files, capabilities,
//  - null_script by the options of your device's text,
//  - null_image by what reads your images,
//  - null_engine by LaneEngine, LaneProgram and LaneRequest over your engine.
// Queues, priorities, deadlines, reset, buffers and traces come from the library. Then hold it to
// tests/conformance with a fixture of some forty lines.
#include "corelane/driver/module.h"
#include "drivers/null/null_engine.h"

namespace corelane::device {
namespace {

Result<OpenedEngine> open_null(const OpenRequest& request) {
  CORELANE_ASSIGN(drivers::null::Script script,
                  drivers::null::read_script(request.spec, request.info.cores.size()));
  auto engine = drivers::null::make_null_engine(std::move(script), request.clock);
  OpenedEngine opened{request.info, std::move(engine)};
  opened.info.engine = "none";
  return opened;
}

}  // namespace

const DriverDescription& describe_null();

const DriverModule& driver_null() {
  static constexpr DriverModule module = {CORELANE_DRIVER_BUILD, &describe_null, &open_null};
  return module;
}

}  // namespace corelane::device
